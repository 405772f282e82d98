"""Every call of every service, and who may make it: what proto/ says in words."""

from rig.client import load_stubs, methods
from rig.layout import DATABASE_SERVICES, SERVICES

load_stubs()

ANYONE = {
    "IdentityService.ListSecurityQuestions", "IdentityService.GetLegalDocument", "IdentityService.Register",
    "IdentityService.VerifyEmail", "IdentityService.LogIn", "IdentityService.Refresh", "RecipientsService.GetPrompt",
    "RecipientsService.AnswerPrompt", "DeliveryService.GetLink", "DeliveryService.OpenLink",
    "DeliveryService.Acknowledge",
}
SERVICES_ONLY = {
    "EventService.Subscribe": set(SERVICES),
    "DirectoryService.GetSigningKeys": set(SERVICES),
    "DirectoryService.BatchGetAccounts": set(SERVICES),
    "DirectoryService.FindAccountsByEmail": {"confirmation", "notifications"},
    "DirectoryService.GetSecurityQuestion": {"confirmation"},
    "DirectoryService.CheckSecurityAnswer": {"confirmation"},
    "AudienceService.CheckAudience": {"vault", "confirmation"},
    "AudienceService.FreezeAudience": {"delivery"},
    "ReleaseService.ListReady": {"delivery"},
    "ReleaseService.ReadDelivered": {"delivery"},
    "DesignationService.GetDesignationState": {"vault", "identity"},
    "GrantService.GetGrant": {"vault"},
    "SendService.Send": {"identity", "recipients", "confirmation", "delivery", "vault"},
}


def name(method) -> str:
    return f"{method.containing_service.name}.{method.name}"


def path(method) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def every_call() -> list:
    """Pairs of service and method."""
    return [(service, method) for service in DATABASE_SERVICES for method in methods(service).values()]


def services_calls() -> list:
    return [(service, method) for service, method in every_call() if name(method) in SERVICES_ONLY]


def owners_calls() -> list:
    """What stands in neither list is for a signed-in person: a new call is closed until it is listed."""
    return [(service, method) for service, method in every_call()
            if name(method) not in SERVICES_ONLY and name(method) not in ANYONE]
