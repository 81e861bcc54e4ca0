// An identity provider that others have written. A request for a token may say what is to be changed in it before it is signed:
// `change={"header": {…}, "payload": {…}}`; null takes an entry out. Prints its address, and ends with its input.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
await server.issuer.keys.generate("ES256");
server.service.on("beforeTokenSigning", (token, request) => {
  const change = JSON.parse(request.body?.change ?? "{}");
  for (const part of ["header", "payload"]) {
    for (const [name, value] of Object.entries(change[part] ?? {})) {
      if (value === null) delete token[part][name];
      else token[part][name] = value;
    }
  }
});
await server.start(0, "localhost");
console.log(server.issuer.url);
process.stdin.on("end", () => server.stop().then(() => process.exit(0))).resume();
