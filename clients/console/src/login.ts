// Who is it? The same users and tokens as everywhere else on the server.

import { type Client, Problem } from "./client";
import { h, show } from "./dom";
import { problemView } from "./views";

/** Asks until the server knows who it is. */
export function login(client: Client, known: (user: string) => void, reason: unknown): HTMLElement {
  const user = h("input", { name: "user", autocomplete: "username", required: true, autofocus: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password" });
  const token = h("input", { name: "token", type: "password", autocomplete: "off" });
  const told = h("div");
  const send = h("button", { type: "submit", class: "primary" }, "Log in");
  const enter = async () => {
    if (token.value !== "") client.withToken(token.value.trim());
    else client.withPassword(user.value, password.value);
    send.disabled = true;
    try {
      known(await client.whoAmI());
    } catch (error) {
      client.forget();
      show(told, problemView(error));
      password.value = "";
      password.focus();
    } finally {
      send.disabled = false;
    }
  };
  const form = h(
    "form",
    {
      class: "card login",
      "aria-labelledby": "login-title",
      submit: (event: SubmitEvent) => {
        event.preventDefault();
        void enter();
      },
    },
    h("h1", { id: "login-title" }, "Bowshot"),
    h("label", {}, "User", user),
    h("label", {}, "Password", password),
    h("details", {}, h("summary", {}, "Use a token"), h("label", {}, "Token", token)),
    send,
    told,
    h("p", { class: "note" }, "Credentials stay in the memory of this page, and are gone when it is closed or loaded again."),
  );
  token.addEventListener("input", () => (user.required = token.value === ""));
  if (reason instanceof Problem && reason.kind !== "unauthenticated") show(told, problemView(reason));
  return h("main", { class: "login-page" }, form);
}
