"""The pages of this application: what its jobs did, and a way to run one now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from anarchon import RunRefused, UnknownJobError
from shop.jobs import background

if TYPE_CHECKING:
    from django.http import HttpResponse


def about(_request: HttpRequest) -> HttpResponse:
    return JsonResponse({"pid": os.getpid(), "running": background.health().running})


@csrf_exempt
def job(request: HttpRequest, name: str) -> HttpResponse:
    if request.method == "POST":
        try:
            background.run_now(name, timeout=20)
        except UnknownJobError as error:
            return JsonResponse({"error": str(error)}, status=404)
        except RunRefused as error:
            return JsonResponse({"error": str(error)}, status=409)
        return JsonResponse({"pid": os.getpid()})
    runs = background.history(name, limit=20)
    return JsonResponse({"runs": [{"trigger": run.trigger, "status": run.status} for run in runs]})


urlpatterns = [path("", about), path("jobs/<name>", job)]
