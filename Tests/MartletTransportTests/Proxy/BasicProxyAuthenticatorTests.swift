import Glibc
@testable import MartletTransport
import Testing

@Suite("Basic for proxies")
struct BasicProxyAuthenticatorTests {
    private func request(_ credentials: ProxyCredentials?) -> ProxyAuthenticationRequest {
        ProxyAuthenticationRequest(
            proxy: ProxyServer(kind: .http, host: "proxy.example", port: 3128, credentials: credentials),
            method: "CONNECT", target: "example.com:443")
    }

    private let authenticator = BasicProxyAuthenticator()

    @Test("The value is that of RFC 7617")
    func value() {
        let credentials = ProxyCredentials(user: "Aladdin", password: "open sesame")
        #expect(
            authenticator.preemptiveValue(for: request(credentials)) == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        let short = [("a", "", "Basic YTo="), ("a", "b", "Basic YTpi"), ("", "", "Basic Og==")]
        for (user, password, expected) in short {
            #expect(
                BasicProxyAuthenticator.value(of: ProxyCredentials(user: user, password: password))
                    == expected)
        }
        #expect(
            BasicProxyAuthenticator.value(of: ProxyCredentials(user: "test", password: "123£"))
                == "Basic dGVzdDoxMjPCow==")
    }

    @Test("A user name with a colon has no value")
    func colon() {
        #expect(BasicProxyAuthenticator.value(of: ProxyCredentials(user: "a:b", password: "c")) == nil)
    }

    @Test("Nothing is shown unasked where there is nothing, or it is to be asked for")
    func unasked() {
        #expect(authenticator.preemptiveValue(for: request(nil)) == nil)
        let shy = ProxyCredentials(user: "a", password: "b", sendsPreemptively: false)
        #expect(authenticator.preemptiveValue(for: request(shy)) == nil)
    }

    @Test("Credentials for Digest alone have no value, whatever the challenge says")
    func digestAlone() {
        let credentials = ProxyCredentials(user: "a", password: "b", requiresDigest: true)
        #expect(authenticator.preemptiveValue(for: request(credentials)) == nil)
        #expect(
            authenticator.value(answering: ["Basic realm=x"], refused: nil, for: request(credentials)) == nil)
    }

    @Test("A challenge is answered once, and only one that names Basic")
    func answers() {
        let shy = request(ProxyCredentials(user: "a", password: "b", sendsPreemptively: false))
        for challenge in [
            "Basic", "basic realm=\"x\"", "Digest realm=\"a, Basic b\", nonce=\"\\\"\", Basic realm=\"x\"",
            "Negotiate, Basic", "Negotiate ,\tBASIC realm=x",
        ] {
            #expect(authenticator.value(answering: [challenge], refused: nil, for: shy) == "Basic YTpi")
            #expect(authenticator.value(answering: [challenge], refused: "Basic YTpi", for: shy) == nil)
        }
        for challenge in [
            "", ",,,", "Digest realm=\"x\"", "Digest realm=\"a, Basic b\"", "Basically realm=\"x\"",
            "Digest realm=Basic", "Digest realm=\"", "X \", Basic", "Bas\"\"ic",
        ] {
            #expect(authenticator.value(answering: [challenge], refused: nil, for: shy) == nil)
        }
        #expect(
            authenticator.value(answering: ["Digest realm=x", "Basic realm=y"], refused: nil, for: shy)
                != nil)
        #expect(authenticator.value(answering: ["Basic"], refused: nil, for: request(nil)) == nil)
    }

    /// How long this thread has computed: it counts neither stalls nor what other threads take of the processor.
    private func computed() -> Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test("A challenge of a megabyte takes no longer than its bytes")
    func large() {
        let shy = request(ProxyCredentials(user: "a", password: "b", sendsPreemptively: false))
        for unit in [",", "a ", "\"", "\\", "Basic=", "x"] {
            let field = String(repeating: unit, count: 1 << 20)
            let start = computed()
            _ = authenticator.value(answering: [field], refused: nil, for: shy)
            #expect(computed() - start < .seconds(60))
        }
    }

    @Test("Credentials are shown in no description")
    func secrecy() {
        let credentials = ProxyCredentials(user: "agent", password: "hunter2")
        let proxy = ProxyServer(kind: .https, host: "::1", port: 3128, credentials: credentials)
        var dumped = ""
        dump(proxy, to: &dumped)
        dump(credentials, to: &dumped)
        for text in [
            "\(credentials)", String(reflecting: credentials), "\(proxy)", String(reflecting: proxy), dumped,
        ] {
            #expect(!text.contains("hunter2") && !text.contains("agent"))
        }
        #expect("\(proxy)" == "https://[::1]:3128")
    }
}
