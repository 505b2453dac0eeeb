import Foundation
import Martlet
import MartletTesting
import Testing

/// A feature of AFNetworking or MKNetworkKit, and a scenario that uses its counterpart in Martlet.
struct MigrationScenario: Sendable, CustomTestStringConvertible {
    /// The number of the feature: `M` for MKNetworkKit 2, `K` for MKNetworkKit 1, `A` for AFNetworking.
    let id: String
    /// The feature, as a sentence.
    let title: String
    /// Uses the feature against servers on loopback.
    let run: @Sendable () async throws -> Void

    init(_ id: String, _ title: String, _ run: @escaping @Sendable () async throws -> Void) {
        self.id = id
        self.title = title
        self.run = run
    }

    var testDescription: String { title }
}

@Suite("Migration from AFNetworking and MKNetworkKit", .timeLimit(.minutes(20)))
struct MigrationTests {
    static let scenarios =
        HostScenarios.all + TaskScenarios.all + EngineScenarios.all + OperationScenarios.all
        + SessionScenarios.all + RequestScenarios.all + SecurityScenarios.all + NetworkScenarios.all

    @Test("Every feature of AFNetworking and MKNetworkKit works", arguments: scenarios)
    func works(_ scenario: MigrationScenario) async throws { try await scenario.run() }

    @Test("Every feature of AFNetworking and MKNetworkKit has exactly one scenario")
    func isComplete() {
        let features = [("M", 15), ("K", 14), ("A", 18)].flatMap { kit, count in
            (1...count).map { "\(kit)\($0)" }
        }
        #expect(MigrationTests.scenarios.map(\.id).sorted() == features.sorted())
        #expect(Set(MigrationTests.scenarios.map(\.title)).count == features.count)
    }
}

extension HTTPSession {
    /// A session that trusts the authority of a test origin.
    static func trusting(
        _ origin: TestOrigin, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> HTTPSession {
        plain {
            $0.tls.trust = .only(.text(origin.authorityPEM ?? ""))
            change(&$0)
        }
    }
}

extension OriginHandler {
    /// Responses that a cache may store, each with the number of its request as its text; a request with their entity tag gets
    /// a 304.
    static func versions(_ control: String, age: Int? = nil) -> OriginHandler {
        let counter = OriginHandler.counter()
        return OriginHandler { request in
            var response = try await counter.respond(to: request)
            response.headers["Cache-Control"] = control
            response.headers["ETag"] = "\"t\""
            if request.headers["If-None-Match"] == "\"t\"" {
                return OriginResponse(304, headers: response.headers)
            }
            if let age { response.headers["Age"] = "\(age)" }
            return response
        }
    }
}

extension TemporaryDirectory {
    /// The bytes of a file of the directory.
    func bytes(of name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: URL(filePath: appending(name))))
    }

    /// The path of a name in the directory.
    func file(_ name: String) -> FilePath { FilePath(appending(name)) }
}

/// Runs a closure with a directory that is removed afterwards.
func withDirectory(_ body: (TemporaryDirectory) async throws -> Void) async throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    try await body(directory)
}
