import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization

/// The step with a request that outlives a process, and an origin that is down.
enum DemoQueue {
    static let steps = [
        Demo.Step(
            title: "Freeze a POST while the origin is down, end the process, have another one deliver it",
            run: freeze)
    ]

    /// The effects of the origin by `Idempotency-Key`, and the number of requests.
    private final class Effects: Sendable {
        private struct State {
            var effects: [String: String] = [:]
            var requestCount = 0
        }

        private let state = Mutex(State())

        /// Makes a payment, once for each key.
        /// - Returns: The number of requests.
        func take(_ payment: String, key: String) -> Int {
            state.withLock { state in
                if state.effects[key] == nil { state.effects[key] = payment }
                state.requestCount += 1
                return state.requestCount
            }
        }

        var all: [String] { state.withLock { Array($0.effects.values) } }
        var requestCount: Int { state.withLock { $0.requestCount } }
    }

    private static func freeze(_ stage: DemoEnvironment) async throws -> [String] {
        let port = try ReservedPort()
        let url = "https://127.0.0.1:\(port.number)/payments"
        let queue = ["--queue", stage.folder.appending("queue").string]
        let id = try await DemoProcess.run(
            ["queue", "add"] + queue + ["--tag", "demo", "-d", "amount=42", url])
        let refused = try await postpone(queue)
        let effects = Effects()
        let handler = OriginHandler { request in
            guard let key = request.fields["Idempotency-Key"] else { return .text("no key", status: 400) }
            var payment: [UInt8] = []
            for try await piece in request.body { payment += piece }
            guard effects.take(String(decoding: payment, as: UTF8.self), key: key) > 1 else {
                // The payment is made, and its response is lost.
                throw OriginFault(.cut)
            }
            return .text("paid", status: 201)
        }
        let options = OriginOptions(binding: .ipv4(port: port.number), tls: .trusted)
        let origin = try await TestOrigin.start(options, handler: handler)
        port.release()
        let events: String
        do {
            let file = stage.folder.appending("queue-ca.pem").string
            let authority = Data((origin.authorityPEM ?? "").utf8)
            try await BlockingThreadPool.shared.run {
                Result { try authority.write(to: URL(filePath: file), options: .atomic) }
            }.get()
            events = try await DemoProcess.run(
                ["queue", "run", "--until-empty", "--noproxy", "*", "--cacert", file] + queue)
        } catch {
            await origin.stop()
            throw error
        }
        await origin.stop()
        try check(effects.all == ["amount=42"], "the origin's ledger has \(effects.all)")
        try check(effects.requestCount == 2, "\(effects.requestCount) requests came")
        let lines = events.split(separator: "\n")
        guard let delivered = lines.first(where: { $0.hasPrefix("delivered ") }) else {
            throw DemoFailure("nothing was delivered: \(events)")
        }
        try check(delivered.contains("[demo]"), "the event has no tag: \(delivered)")
        let left = try await DemoProcess.run(["queue", "list"] + queue)
        try check(left.isEmpty, "the queue holds \(left)")
        return [
            "process 1 wrote request \(id.prefix { $0 != "\n" }) down; process 2: \(refused), and was killed",
            "process 3: \(delivered)",
            "2 requests with one key, the first of which lost its answer: 1 effect in the origin's ledger",
        ]
    }

    /// Makes a process try to send the requests, until it failed, and kills it.
    private static func postpone(_ queue: [String]) async throws -> Substring {
        let process = try DemoProcess(["queue", "run", "--noproxy", "*"] + queue)
        let line = await process.line(beginning: "postponed ")
        await process.kill()
        guard let line, let colon = line.firstRange(of: ": ") else {
            throw DemoFailure("the process that found nobody did not say so")
        }
        return line[colon.upperBound...].prefix { $0 != "," }
    }
}
