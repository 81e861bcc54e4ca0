// An identity provider that others have written. A request for a token may say what is to be changed in its payload before it is
// signed: `change={…}`. Prints its address, and ends with its input.
import { OAuth2Server } from "oauth2-mock-server";

const server = new OAuth2Server();
await server.issuer.keys.generate("RS256");
await server.issuer.keys.generate("ES256");
server.service.on("beforeTokenSigning", (token, request) => {
  Object.assign(token.payload, JSON.parse(request.body?.change ?? "{}"));
});
await server.start(0, "localhost");
console.log(server.issuer.url);
process.stdin.on("end", () => server.stop().then(() => process.exit(0))).resume();
