"""Messages to the demo bots, and answers of the scripted model. Dates are relative to the first run."""

from memadmin.demo.script import Story
from memadmin.demo.stories import assistant, support, tutor

STORIES: list[Story] = [*support.STORIES, *tutor.STORIES, *assistant.STORIES]
