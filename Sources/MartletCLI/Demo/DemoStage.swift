import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage

/// What the steps of the demo share: the origin, a session that trusts it, a folder.
struct DemoStage: Sendable {
    let origin: TestOrigin
    let session: HTTPSession
    let folder: FilePath

    /// Starts the origin and makes the folder.
    static func set() async throws -> DemoStage {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "martlet-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let origin = try await TestOrigin.start(.tls(.trusted), handler: StandardRoutes().handler)
        let session = ProgramSessions.shared.make(configuration(trusting: origin))
        return DemoStage(origin: origin, session: session, folder: FilePath(folder.path))
    }

    /// Settings that trust an origin, and nobody else.
    static func configuration(trusting origin: TestOrigin) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        // What the demo shows holds on a slow machine too.
        configuration.timeouts.connect = .seconds(120)
        if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
        return configuration
    }

    /// Stops the origin and removes the folder.
    func clear() async {
        await origin.stop()
        try? FileManager.default.removeItem(atPath: folder.string)
    }

    /// A request to the origin.
    func request(_ method: HTTPRequest.Method, _ path: String) throws -> HTTPRequest {
        try HTTPRequest(method: method, url: origin.url(path))
    }
}
