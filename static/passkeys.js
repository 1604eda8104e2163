// Passkeys: form[data-passkey=create|get] asks the browser before it is sent. What is to be signed is in the element
// that [data-options] names, or at the address [data-options-from]; the answer goes into the form's one credential field.
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
  if (!window.PublicKeyCredential) return "This browser has no passkeys, or this page did not come over HTTPS.";
  if (problem.name === "SecurityError") return "Passkeys work only under the console's own name, not at an address of numbers.";
  if (problem.name === "InvalidStateError") return "This device keeps a passkey for your account already.";
  return "The browser gave no passkey. Nothing was sent.";
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
