from django.urls import include, path

from memadmin.erasure.views import actions, cases, lists, receipts

app_name = "erasure"
urlpatterns = [
    path("", lists.request_list, name="requests"),
    path("new/", lists.new, name="request-new"),
    path("<uuid:case_id>/", cases.case, name="request"),
    path("<uuid:case_id>/check/", actions.check, name="request-check"),
    path("<uuid:case_id>/count/", actions.count, name="request-count"),
    path("<uuid:case_id>/ask/", actions.ask, name="request-ask"),
    path("<uuid:case_id>/approve/", actions.approve, name="request-approve"),
    path("<uuid:case_id>/reject/", actions.reject, name="request-reject"),
    path("<uuid:case_id>/refuse/", actions.refuse, name="request-refuse"),
    path("<uuid:case_id>/extend/", actions.extend, name="request-extend"),
    path("<uuid:case_id>/cancel/", actions.cancel, name="request-cancel"),
    path("<uuid:case_id>/comment/", actions.comment, name="request-comment"),
    path("<uuid:case_id>/pause/", actions.pause, name="request-pause"),
    path("<uuid:case_id>/resume/", actions.resume, name="request-resume"),
    path("<uuid:case_id>/steps/<int:step_id>/leave-out/", actions.leave_out, name="request-leave-out"),
    path("", include("memadmin.erasure.access_copy.urls")),
    path("<uuid:case_id>/receipt/", receipts.receipt, name="request-receipt"),
    path("<uuid:case_id>/receipt.json", receipts.receipt_file, name="request-receipt-file"),
]
