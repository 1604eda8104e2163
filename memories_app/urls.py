from django.urls import path

from memories_app.views import memories, recall

app_name = "memories"
urlpatterns = [
    path("", memories.memory_list, name="list"),
    path("recall/", recall.recall, name="recall"),
    path("learned-from/<uuid:record_id>/", memories.learned_from, name="learned-from"),
    path("<uuid:memory_id>/", memories.memory, name="memory"),
    path("<uuid:memory_id>/retire/", memories.retire, name="retire"),
    path("<uuid:memory_id>/revalidate/", memories.revalidate, name="revalidate"),
]
