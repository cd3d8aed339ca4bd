// A real OpenID provider on loopback. Its accounts are those of its argument, with any password.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [installed, accountsText] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(createRequire(`${installed}/`).resolve('oidc-provider')));
const accounts = JSON.parse(accountsText);

// The port is open before the provider is told its own address: nobody else can take it.
const server = createServer();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: ['resolute', 'another'].map((id) => ({
    client_id: id,
    token_endpoint_auth_method: 'none',
    application_type: 'native',
    grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
    redirect_uris: ['http://127.0.0.1/sign-in/provider/return'],
    response_types: ['code'],
  })),
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  conformIdTokenClaims: false,
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, ...accounts[id] }),
  }),
});
server.on('request', provider.callback());
console.log(`listening at ${issuer}`);
