"""Who said what to the demo bots, and what the scripted model answers. Dates are counted back from the first run."""

from memadmin.demo.script import Story
from memadmin.demo.stories import assistant, support, tutor

STORIES: list[Story] = [*support.STORIES, *tutor.STORIES, *assistant.STORIES]
