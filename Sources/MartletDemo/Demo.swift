import FoundationEssentials
import Martlet
package import MartletCore
import MartletTesting
import SystemPackage

/// The steps of the demo, one after the other, and what came of them.
package enum Demo {
    /// A step: what it shows, and what does it.
    struct Step: Sendable {
        var title: String
        var run: @Sendable (DemoStage) async throws -> [String]
    }

    private static let steps: [Step] =
        DemoRequests.steps + DemoHosts.steps + DemoTransfers.steps + DemoDownloads.steps + DemoTasks.steps
        + DemoFaults.steps + DemoQueue.steps

    /// Runs all steps, and says what happens in each.
    /// - Parameters:
    ///   - makeSession: Makes the sessions, which end with the program.
    ///   - say: Writes text.
    /// - Returns: Whether no step failed.
    /// - Throws: What prevents the origin or its folder from being made.
    package static func run(
        makeSession: @escaping @Sendable (SessionConfiguration) -> HTTPSession, say: (String) async -> Void
    ) async throws -> Bool {
        let stage = try await DemoStage(makeSession)
        await say(
            "The origin listens on \(stage.origin.base), trusted through its throw-away authority alone.\n"
                + "In the pictures: c connecting, t TLS, . sending and waiting, r receiving.\n")
        let start = ContinuousClock.now
        var failures = 0
        for (index, step) in steps.enumerated() {
            await say("\n\(index + 1). \(step.title)\n")
            do {
                for line in try await step.run(stage) { await say("   \(line)\n") }
                await say("   ok\n")
            } catch {
                failures += 1
                await say("   FAILED: \(error)\n")
            }
        }
        let status = stage.session.poolStatus
        await say(
            "\nConnections: \(status.opened) opened, \(status.reused) exchanges on one that had carried another before, "
                + "\(status.leased) in use now.\n")
        await stage.clear()
        let time = Timeline.milliseconds(ContinuousClock.now - start)
        await say(
            failures == 0
                ? "All \(steps.count) steps as they should be, in \(time).\n" : "\(failures) failed.\n")
        return failures == 0
    }
}

/// A step of the demo that did not go as it should.
struct DemoFailure: Error, CustomStringConvertible {
    /// What was wrong.
    var description: String

    init(_ description: String) { self.description = description }

    /// Throws unless a condition holds.
    static func check(_ condition: Bool, _ description: @autoclosure () -> String) throws(DemoFailure) {
        if !condition { throw DemoFailure(description()) }
    }
}

/// What the steps of the demo share: the origin, a session that trusts it, a folder.
struct DemoStage: Sendable {
    let origin: TestOrigin
    let session: HTTPSession
    let folder: FilePath
    private let makeSession: @Sendable (SessionConfiguration) -> HTTPSession

    /// Starts the origin and makes the folder.
    init(_ makeSession: @escaping @Sendable (SessionConfiguration) -> HTTPSession) async throws {
        self.makeSession = makeSession
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "martlet-demo-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        origin = try await TestOrigin.start(.tls(.trusted), handler: StandardRoutes().handler)
        session = makeSession(DemoStage.configuration(trusting: origin))
        self.folder = FilePath(folder.path)
    }

    /// Settings that trust an origin, and nobody else.
    static func configuration(trusting origin: TestOrigin) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        // What the demo shows holds on a slow machine too.
        configuration.timeouts.connect = .seconds(120)
        if let authority = origin.authorityPEM { configuration.tls.trust = .only(.text(authority)) }
        return configuration
    }

    /// A session that trusts an origin, and nobody else.
    func session(trusting origin: TestOrigin) -> HTTPSession {
        makeSession(DemoStage.configuration(trusting: origin))
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

extension FileDescriptor {
    /// As many bytes as there are, up to a limit; empty at the end. Blocks.
    func bytes(atMost limit: Int) throws -> [UInt8] {
        try unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = unsafe try read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

/// When the parts of a request happened, as a picture of one line.
enum Timeline {
    private static let width = 32

    /// `GET /json 200  [cct.......rr]  connect 0.2 ms, TLS 3.1 ms, first byte 4.0 ms, total 4.2 ms`.
    static func line(_ title: String, _ metrics: HTTPMetrics) -> String {
        let connect = (metrics.dns ?? .zero) + (metrics.connect ?? .zero)
        let tls = metrics.tls ?? .zero
        let first = metrics.firstByte ?? metrics.total
        let total = max(metrics.total, first)
        let marks: [(Character, Duration)] = [
            ("c", connect), ("t", connect + tls), (".", first), ("r", total),
        ]
        var picture = ""
        for column in 0..<width {
            let time = total * (Double(column) + 0.5) / Double(width)
            picture.append(marks.first { time <= $0.1 }?.0 ?? "r")
        }
        var parts = [
            metrics.isConnectionReused
                ? "reused" : "connect \(milliseconds(connect)), TLS \(milliseconds(tls))"
        ]
        parts.append("first byte \(milliseconds(first))")
        parts.append("total \(milliseconds(total))")
        let padding = String(repeating: " ", count: max(0, 24 - title.count))
        return "\(title)\(padding) [\(picture)]  \(parts.joined(separator: ", "))"
    }

    /// A duration in milliseconds, with one decimal.
    static func milliseconds(_ duration: Duration) -> String {
        let tenths = Int((duration / .milliseconds(1) * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
