import Martlet

/// The compiled samples of the documentation page on TLS. A test compares the two texts.
enum HSTSSamples {
    static func session() async throws {
        var configuration = SessionConfiguration.default
        let hsts = try HSTSStore(file: "/var/lib/app/hsts.txt")
        configuration.hsts = hsts
        let session = HTTPSession(configuration: configuration)
        // Sent over https, if example.com has asked for it before.
        _ = try await session.get("http://example.com/")
        try await hsts.save()
    }

    static func preloaded() throws -> HSTSStore {
        let store = try HSTSStore(preloaded: [
            HSTSEntry(host: "example.com", includesSubdomains: true)
        ])
        return store
    }
}
