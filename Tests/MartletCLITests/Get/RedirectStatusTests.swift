import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Exit codes of redirects", .timeLimit(.minutes(10)))
struct RedirectStatusTests {
    @Test(
        "With -L an invalid Location exits with 3, one of another scheme with 1, as in curl",
        arguments: [
            ("http://[x/", 3), ("http://a b:99999/", 3), ("http:///", 3), ("foo://x/", 1),
            ("ftp://127.0.0.1/", 1),
        ])
    func location(_ location: String, _ code: Int32) async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) { _ in
            .redirect(to: location)
        } run: { (origin) async throws in
            #expect(try await scene.run("-L", "-o", scene.file("out"), origin.url("/")).code == code)
        }
    }
}
