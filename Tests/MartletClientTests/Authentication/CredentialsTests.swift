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
        "A Basic value is the Base64 of user, colon and password in UTF-8",
        arguments: [
            ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
            ("test", "123\u{A3}", "Basic dGVzdDoxMjPCow=="), ("user", "", "Basic dXNlcjo="),
            ("", "pass", "Basic OnBhc3M="), ("", "", "Basic Og=="), ("a", "b:c", "Basic YTpiOmM="),
        ])
    func basic(_ user: String, _ password: String, _ expected: String) throws {
        #expect(try text(Credentials.basic(user: user, password: password).preemptiveValue()) == expected)
    }

    @Test("A colon in a Basic user name and control characters in any part are rejected")
    func rejected() {
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
        "A bearer token with invalid characters is rejected",
        arguments: ["", "=", "a b", "a\r\nX: y", "a=b", "\u{E4}", "a,b", "a\u{0}"])
    func refusedToken(_ token: String) {
        #expect(throws: CredentialsError.invalidToken) { try Credentials.bearer(token).preemptiveValue() }
    }

    @Test("A bearer token is sent unchanged")
    func bearer() throws {
        #expect(
            try text(Credentials.bearer("mF_9.B5f-4.1JqM~+/==").preemptiveValue())
                == "Bearer mF_9.B5f-4.1JqM~+/==")
    }

    @Test("Digest credentials and credentials for any scheme are not sent preemptively")
    func preemptive() throws {
        #expect(try Credentials.digest(user: "a", password: "b").preemptiveValue() == nil)
        #expect(try Credentials.any(user: "a", password: "b").preemptiveValue() == nil)
    }

    @Test("Descriptions and dumps contain no secrets")
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
