from django.urls import path

from memadmin.erasure.batches import actions, views

app_name = "batches"
urlpatterns = [
    path("", views.batch_list, name="batches"),
    path("new/", views.new, name="batch-new"),
    path("<uuid:batch_id>/", views.batch, name="batch"),
    path("<uuid:batch_id>/broken/", views.broken, name="batch-broken"),
    path("<uuid:batch_id>/broken.csv", views.broken_file, name="batch-broken-file"),
    path("<uuid:batch_id>/outcome.csv", views.outcome_file, name="batch-outcome-file"),
    path("<uuid:batch_id>/lines/<int:line_number>/", actions.correct, name="batch-correct"),
    path("<uuid:batch_id>/count/", actions.count, name="batch-count"),
    path("<uuid:batch_id>/ask/", actions.ask, name="batch-ask"),
    path("<uuid:batch_id>/approve/", actions.approve, name="batch-approve"),
    path("<uuid:batch_id>/reject/", actions.reject, name="batch-reject"),
    path("<uuid:batch_id>/extend/", actions.extend, name="batch-extend"),
    path("<uuid:batch_id>/cancel/", actions.cancel, name="batch-cancel"),
    path("<uuid:batch_id>/pause/", actions.pause, name="batch-pause"),
    path("<uuid:batch_id>/resume/", actions.resume, name="batch-resume"),
    path("<uuid:batch_id>/retry/", actions.retry, name="batch-retry"),
]
