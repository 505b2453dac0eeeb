import MartletContent
import MartletURL
import HTTPTypes
import Martlet
import Testing

@testable import MartletCLI

@Suite("Credentials that queue run adds to requests")
struct QueueSecretsTests {
    private func secrets(_ words: String...) async throws(UsageError) -> QueueSecrets {
        var reader = CommandLineParser(
            QueueRunCommand.options)
        try reader.read(words)
        return try await QueueSecrets(reader.groups[0])
    }

    @Test("A password is sent only to its origin, however many origins there are")
    func password() async throws {
        let origin = try HTTPURL("https://a.example/").origin
        var options = RequestOptions()
        let credentials = try await secrets("-u", "me:secret").apply(to: &options, for: origin)
        #expect(credentials == nil)
        #expect(options.authentication?.credentials == nil)
        #expect(options.authentication?.credentialsByOrigin.keys.map(\.description) == [origin.description])
        var none = RequestOptions()
        _ = try await secrets("-u", "me:secret").apply(to: &none, for: nil)
        #expect(none.authentication?.credentialsByOrigin.isEmpty == true)
    }

    @Test("Given headers and cookies replace those of a request, and no other origin receives them")
    func fields() async throws {
        var options = RequestOptions()
        let origin = try HTTPURL("https://a.example/").origin
        let added = try #require(
            try await secrets("-H", "X-Key: new", "-b", "a=1", "-b", "b=2", "-H", "Accept:").apply(
                to: &options, for: origin))
        var request = HTTPRequest(method: .post, url: try HTTPURL("https://a.example/x"))
        let name = try #require(HTTPField.Name("x-key"))
        request.headerFields[name] = "old"
        let made = try await added.authorize(request)
        #expect(made.headerFields[values: name] == ["new"])
        #expect(made.headerFields[.cookie] == "a=1; b=2")
        #expect(options.omittedFields == [.accept])
        let other = HTTPRequest(method: .post, url: try HTTPURL("https://b.example/x"))
        await #expect(throws: UsageError.self) { try await added.authorize(other) }
        let nothing = try await secrets().apply(to: &options, for: nil)
        #expect(nothing == nil)
    }

    @Test("The key and the framing of a request cannot be replaced")
    func ownFields() async {
        for line in [
            "Idempotency-Key: a", "Idempotency-Key:", "Content-Length: 1", "Transfer-Encoding: chunked",
        ] {
            await #expect(throws: UsageError.self) { try await secrets("-H", line) }
        }
    }
}
