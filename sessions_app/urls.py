from django.urls import path

from sessions_app.views import downloads, find, overview, search, sessions, stores, subjects, timeline

app_name = "sessions"
urlpatterns = [
    path("", overview.overview, name="overview"),
    path("sessions/", sessions.session_list, name="list"),
    path("sessions/newer/", sessions.newer, name="newer"),
    path("sessions/label/", sessions.label, name="label"),
    path("sessions/unlabel/", sessions.unlabel, name="unlabel"),
    path("sessions/attach/", sessions.attach, name="attach"),
    path("sessions/detach/", sessions.detach, name="detach"),
    path("sessions/<uuid:record_id>/", timeline.timeline, name="timeline"),
    path("sessions/<uuid:record_id>/live/", timeline.live, name="live"),
    path("sessions/<uuid:record_id>/find/", find.find, name="find"),
    path("sessions/<uuid:record_id>/find/<uuid:search_id>/", find.find_next, name="find-next"),
    path("sessions/<uuid:record_id>/items/<path:item_id>/", timeline.item, name="item"),
    path("sessions/<uuid:record_id>/export.jsonl", downloads.export_jsonl, name="export-jsonl"),
    path("sessions/<uuid:record_id>/export.md", downloads.export_markdown, name="export-markdown"),
    path("subjects/", subjects.subject_list, name="subjects"),
    path("subjects/<uuid:subject_id>/", subjects.subject, name="subject"),
    path("subjects/<uuid:subject_id>/merge/", subjects.merge, name="subject-merge"),
    path("subjects/<uuid:subject_id>/undo-merge/", subjects.undo_merge, name="subject-undo-merge"),
    path("subjects/<uuid:subject_id>/aliases/", subjects.add_alias, name="alias-add"),
    path("subjects/<uuid:subject_id>/aliases/<int:alias_id>/remove/", subjects.remove_alias, name="alias-remove"),
    path("search/", search.search, name="search"),
    path("search/<uuid:search_id>/", search.search_results, name="search-results"),
    path("search/<uuid:search_id>/messages/", search.search_messages, name="search-messages"),
    path("stores/", stores.store_list, name="stores"),
    path("stores/<slug:name>/", stores.store, name="store"),
    path("stores/<slug:name>/patterns/", stores.save_pattern, name="pattern-add"),
    path("stores/<slug:name>/patterns/try/", stores.try_pattern, name="pattern-try"),
    path("stores/<slug:name>/patterns/<int:pattern_id>/", stores.save_pattern, name="pattern-change"),
    path("stores/<slug:name>/patterns/<int:pattern_id>/try/", stores.try_pattern, name="pattern-try-change"),
    path("stores/<slug:name>/patterns/<int:pattern_id>/up/", stores.move_pattern_up, name="pattern-up"),
    path("stores/<slug:name>/patterns/<int:pattern_id>/delete/", stores.delete_pattern, name="pattern-delete"),
]
