import Glibc
import Martlet
import Synchronization

/// A scenario with a host that fails in three ways, next to a hundred fast hosts.
struct DeadHost: SoakScenario {
    let name = "dead-host"

    private static let hosts = 100
    private static let callers = 60
    private static let rounds = 5
    private static let phase = Duration.seconds(4)

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let nginx = try Peer(["nginx", "\(DeadHost.hosts)", "1000000"])
        defer { nginx.stop() }
        let silent = try Peer(["origin"])
        defer { silent.stop() }
        let hole = try BlackHole()
        defer { hole.close() }
        let port = try nginx.number("port")
        let fast = try (1...DeadHost.hosts).map { try HTTPURL("http://127.0.1.\($0):\(port)/") }
        let dead = [
            try HTTPURL("http://127.0.0.1:\(hole.port)/"), try silent.url("/stall"),
            try HTTPURL("http://dead.invalid/"),
        ]
        let session = silent.session { configuration in
            configuration.resolver = DeadResolver()
            configuration.timeouts.connect = .seconds(1)
            configuration.timeouts.head = .seconds(1)
        }
        _ = try await latencies(fast, [], session)
        var alone: [Double] = []
        var beside: [Double] = []
        var failures = 0
        for _ in 0..<DeadHost.rounds {
            let quiet = try await latencies(fast, [], session)
            let loud = try await latencies(fast, dead, session)
            alone.append(quiet.percentile99)
            beside.append(loud.percentile99)
            failures += quiet.failures + loud.failures
        }
        // Ratios are computed per round, because the load of the machine varies less within a round.
        let ratio = middle(zip(beside, alone).map { $0 / max($1, 0.001) })
        report.note("p99 of the fast hosts alone, each round", list(alone))
        report.note("p99 next to the dead host, each round", list(beside))
        report.add("ratio of these p99s", ratio, atMost: 2, unit: "×")
        report.add("failed requests to fast hosts", failures, exactly: 0)
    }

    private struct Latencies {
        var percentile99: Double
        var failures: Int
    }

    /// Measures calls to every fast host from time to time, while other callers call the dead hosts continuously.
    private func latencies(
        _ fast: [HTTPURL], _ dead: [HTTPURL], _ session: HTTPSession
    ) async throws -> Latencies {
        let end = ContinuousClock.now + DeadHost.phase
        return await withTaskGroup(of: (milliseconds: [Double], failures: Int).self) { group in
            for url in fast {
                group.addTask { await DeadHost.call(url, until: end, session) }
            }
            for caller in 0..<(dead.isEmpty ? 0 : DeadHost.callers) {
                group.addTask {
                    while ContinuousClock.now < end {
                        // This call is expected to fail.
                        _ = try? await session.send(.get, dead[caller % dead.count])
                    }
                    return ([], 0)
                }
            }
            var all: [Double] = []
            var failures = 0
            for await part in group {
                all += part.milliseconds
                failures += part.failures
            }
            all.sort()
            return Latencies(percentile99: all.isEmpty ? 0 : all[all.count * 99 / 100], failures: failures)
        }
    }

    private static func call(
        _ url: HTTPURL, until end: ContinuousClock.Instant, _ session: HTTPSession
    ) async -> (milliseconds: [Double], failures: Int) {
        var milliseconds: [Double] = []
        var failures = 0
        while ContinuousClock.now < end {
            let start = ContinuousClock.now
            do {
                _ = try await session.send(.get, url).validated()
                milliseconds.append((ContinuousClock.now - start).seconds * 1000)
                try await Task.sleep(for: .milliseconds(Int64.random(in: 30...90)))
            } catch {
                failures += 1
            }
        }
        return (milliseconds, failures)
    }

    private func middle(_ values: [Double]) -> Double {
        values.sorted()[values.count / 2]
    }

    private func list(_ values: [Double]) -> String {
        values.map { "\(SoakReport.short($0))" }.joined(separator: " ") + " ms"
    }
}

/// A resolver that never resolves the name of the dead host.
private struct DeadResolver: Resolver {
    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        guard host == "dead.invalid" else {
            return try await SystemResolver().addresses(of: host, port: port)
        }
        // Waits until the call ends.
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        return []
    }
}

/// An address where connecting neither succeeds nor fails: a listener that accepts nothing and whose queue is full.
private struct BlackHole {
    let port: Int
    private let descriptors: [Int32]

    init() throws {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var descriptors = [listener]
        let isListening = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe bind(listener, generic, size) == 0 && listen(listener, 0) == 0
                    && getsockname(listener, generic, &size) == 0
            }
        }
        guard isListening else { throw SoakFailure("no listener: errno \(errno)") }
        // The queue holds one connection more than its length.
        for _ in 0..<4 {
            let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
            let filler = socket(AF_INET, Int32(kind), 0)
            unsafe withUnsafePointer(to: &address) { pointer in
                _ = unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    unsafe connect(filler, $0, size)
                }
            }
            descriptors.append(filler)
        }
        port = Int(UInt16(bigEndian: address.sin_port))
        self.descriptors = descriptors
    }

    func close() {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }
}
