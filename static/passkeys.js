// Passkeys: form[data-passkey=create|get] calls the browser before it is sent. The options are in the element that
// [data-options] names, or at the address [data-options-from]; the result goes into the form's only credential field.
"use strict";

const fromText = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const toText = (bytes) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const withId = (thing) => ({ ...thing, id: fromText(thing.id) });

function forBrowser({ challenge, user, excludeCredentials, allowCredentials, ...rest }, isAlone) {
  const options = { ...rest, challenge: fromText(challenge) };
  if (user) options.user = withId(user);
  if (excludeCredentials) options.excludeCredentials = excludeCredentials.map(withId);
  if (allowCredentials) options.allowCredentials = allowCredentials.map(withId);
  if (user && isAlone) {
    options.authenticatorSelection = {
      ...options.authenticatorSelection, residentKey: "required", requireResidentKey: true, userVerification: "required",
    };
  }
  return options;
}

function forServer(credential) {
  const response = {};
  for (const part of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[part]) response[part] = toText(credential.response[part]);
  }
  if (credential.response.getTransports) response.transports = credential.response.getTransports();
  return {
    id: credential.id,
    rawId: toText(credential.rawId),
    type: credential.type,
    authenticatorAttachment: credential.authenticatorAttachment,
    clientExtensionResults: credential.getClientExtensionResults(),
    response,
  };
}

async function optionsOf(form) {
  const { options, optionsFrom } = form.dataset;
  if (options) return JSON.parse(document.getElementById(options).textContent);
  const answer = await fetch(optionsFrom, { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error("no options");
  return (await answer.json()).request_options;
}

function sentence(problem) {
  if (!window.PublicKeyCredential) return "This browser does not support passkeys, or this page was not loaded over HTTPS.";
  if (problem.name === "SecurityError") return "Passkeys work only with the console's host name, not with an IP address.";
  if (problem.name === "InvalidStateError") return "This device already has a passkey for your account.";
  return "The browser did not return a passkey. Nothing was sent.";
}

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-passkey]");
  if (!form) return;
  event.preventDefault();
  const told = form.querySelector("[data-passkey-problem]");
  told.textContent = "";
  try {
    const { publicKey } = await optionsOf(form);
    const isAlone = Boolean(form.elements.passwordless?.checked);
    const credential = await navigator.credentials[form.dataset.passkey]({ publicKey: forBrowser(publicKey, isAlone) });
    form.querySelector("[name$=credential]").value = JSON.stringify(forServer(credential));
    form.submit();
  } catch (problem) {
    told.textContent = sentence(problem);
  }
});
