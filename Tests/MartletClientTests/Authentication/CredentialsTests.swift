@testable import MartletCredentials
@testable import MartletURL
import FoundationEssentials
import MartletAuthentication
import MartletCore
import Testing

@testable import MartletAuthentication
@testable import MartletCore

@Suite("Credentials")
struct CredentialsTests {
    private func text(_ value: AuthorizationValue?) throws -> String {
        String(decoding: try #require(value).bytes, as: UTF8.self)
    }

    @Test(
        "Basic is name, colon and password in Base64 of their UTF-8",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123\u{A3}", "Basic dGVzdDoxMjPCow=="), ("user", "", "Basic dXNlcjo="),
            ("", "pass", "Basic OnBhc3M="), ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        ])
    func basic(_ user: String, _ password: String, _ expected: String) throws {
        #expect(try text(Credentials.basic(user: user, password: password).preemptiveValue()) == expected)
    }

    @Test("A colon in a name for Basic, and control characters anywhere, are refused")
    func refused() {
        #expect(throws: CredentialsError.colonInUser) {
            try Credentials.basic(user: "a:b", password: "c").preemptiveValue()
        }
        for text in ["a\u{0}", "a\r\nX y", "\t", "\u{7F}"] {
            #expect(throws: CredentialsError.controlCharacter) {
                try Credentials.basic(user: text, password: "c").preemptiveValue()
            }
            #expect(throws: CredentialsError.controlCharacter) {
                try Credentials.basic(user: "a", password: text).preemptiveValue()
            }
        }
    }

    @Test(
        "A token that is no token is refused",
        arguments: ["", "=", "a b", "a\r\nX: y", "a=b", "\u{E4}", "a,b", "a\u{0}"])
    func refusedToken(_ token: String) {
        #expect(throws: CredentialsError.invalidToken) { try Credentials.bearer(token).preemptiveValue() }
    }

    @Test("A token is sent as it is")
    func bearer() throws {
        #expect(
            try text(Credentials.bearer("mF_9.B5f-4.1JqM~+/==").preemptiveValue())
                == "Bearer mF_9.B5f-4.1JqM~+/==")
    }

    @Test("Digest, and whatever the server offers, is not sent unasked")
    func unasked() throws {
        #expect(try Credentials.digest(user: "a", password: "b").preemptiveValue() == nil)
        #expect(try Credentials.any(user: "a", password: "b").preemptiveValue() == nil)
    }

    @Test("No secret is in a description or a mirror")
    func masked() throws {
        let secret = "hunter2"
        let basic = Credentials.basic(user: "jane", password: secret)
        var said = ""
        let values: [Any] = [
            basic, Credentials.digest(user: "jane", password: secret), Credentials.bearer(secret),
            [basic], try basic.preemptiveValue() as Any, AuthenticationSettings(credentials: basic),
            AuthenticationKey(
                party: .origin, origin: try HTTPURL("http://a").origin, credentials: basic),
            try NetrcFile("machine a login jane password \(secret)"),
            try NetrcFile("machine a login jane password \(secret)").entries,
        ]
        for value in values {
            said += "\(value) \(String(reflecting: value))\n"
            dump(value, to: &said)
        }
        #expect(said.contains("jane"))
        #expect(!said.contains(secret))
        #expect(!said.contains("aHVudGVyMg"))
        #expect(!said.contains(Data("jane:\(secret)".utf8).base64EncodedString()))
    }
}
