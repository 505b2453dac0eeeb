import Martlet

/// The samples of the page about digests, compiled and never run; a test compares them with the page.
enum DigestSamples {
    static func verification() async throws {
        var configuration = SessionConfiguration.default
        configuration.digestVerification = .whenPresent
        let session = HTTPSession(configuration: configuration)
        let file = try await session.get(
            "https://example.org/firmware.bin",
            options: .init { $0.digestVerification = .required })
        print(file.body.count)
    }

    static func requests() -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.middleware = [.contentDigest(.sha256)]
        return HTTPSession(configuration: configuration)
    }
}
