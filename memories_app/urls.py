from django.urls import path

from memories_app.learning.views import distillers, signals
from memories_app.pages import exports, memories, recall_preview, recalls

app_name = "memories"
urlpatterns = [
    path("", memories.memory_list, name="list"),
    path("search/", memories.search, name="search"),
    path("table.csv", exports.memory_table, name="table"),
    path("distillers/", distillers.distillers, name="distillers"),
    path("recall/", recall_preview.recall, name="recall"),
    path("recalls/<uuid:recall_id>/", recalls.recall, name="recall-detail"),
    path("recalls/<uuid:recall_id>/place/", recalls.place, name="recall-place"),
    path("learned-from/<uuid:record_id>/", memories.learned_from, name="learned-from"),
    path("learned-by-tool/", memories.learned_by_tool, name="learned-by-tool"),
    path("feedback/<uuid:signal_id>/withdraw/", signals.withdraw_feedback, name="withdraw-feedback"),
    path("feedback/<uuid:record_id>/<path:item_id>/", signals.feedback, name="feedback"),
    path("subjects/<uuid:subject_id>/stop-learning/", signals.stop_learning, name="stop-learning"),
    path("subjects/<uuid:subject_id>/allow-learning/", signals.allow_learning, name="allow-learning"),
    path("<uuid:memory_id>/", memories.memory, name="memory"),
    path("<uuid:memory_id>/change/", memories.change, name="change"),
    path("<uuid:memory_id>/retire/", memories.retire, name="retire"),
    path("<uuid:memory_id>/revalidate/", memories.revalidate, name="revalidate"),
    path("<uuid:memory_id>/versions/<int:number>/erase/", memories.erase_version, name="erase-version"),
]
