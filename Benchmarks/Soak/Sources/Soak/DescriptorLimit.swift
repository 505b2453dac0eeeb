import Glibc
import Martlet

/// A scenario with a thousand requests and 256 descriptors: first with limits that fit, and then with limits that are
/// too high.
struct DescriptorLimit: SoakScenario {
    let name = "descriptors"

    /// The maximum number of descriptors of the process.
    private static let limit = 256

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 1000
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        var bounds = rlimit(rlim_cur: rlim_t(DescriptorLimit.limit), rlim_max: rlim_t(DescriptorLimit.limit))
        guard unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &bounds) == 0 else {
            throw SoakFailure("setrlimit: errno \(errno)")
        }
        let control = peer.session()
        _ = try await control.text(try peer.controlURL("/held"))
        // The first sleep opens descriptors of the runtime.
        try await Task.sleep(for: .milliseconds(1))
        let descriptors = ProcessFigures.descriptors

        let modest = peer.session {
            $0.pool.connectionsPerHost = 200
            $0.pool.totalConnections = 200
        }
        let waited = try await wave(count, modest, peer, control)
        report.add("responses, 200 connections allowed", waited.answered, exactly: count)
        report.add("CPU during the wait", waited.load * 100, atMost: 10, unit: "% of a core")
        await modest.finishAndInvalidate()

        let greedy = peer.session {
            $0.pool.connectionsPerHost = count
            $0.pool.totalConnections = count
        }
        _ = try await control.text(try peer.controlURL("/shut"))
        let failed = try await wave(count, greedy, peer, control)
        let codes = failed.codes.map { "\($0.value) × \($0.key)" }.sorted().joined(separator: ", ")
        report.note("responses, \(count) connections allowed", "\(failed.answered)")
        report.add(
            "failed with a typed error", codes, target: "all others",
            isMet: failed.answered + failed.codes.values.reduce(0, +) == count && failed.untyped == 0)
        report.add("CPU during the wait", failed.load * 100, atMost: 10, unit: "% of a core")

        let after = try await wave(200, greedy, peer, control, isGated: false)
        report.add("responses afterwards, of 200", after.answered, exactly: 200)
        await greedy.finishAndInvalidate()
        report.add("leaked descriptors", ProcessFigures.descriptors - descriptors, exactly: 0)
    }

    private struct Wave {
        var answered = 0
        var codes: [String: Int] = [:]
        var untyped = 0
        /// The used share of one processor while all requests waited.
        var load = 0.0
    }

    private enum Ending: Sendable {
        case answered
        case failed(String)
        case untyped(String)
    }

    /// Sends requests that the server holds, until each of them waits, has failed or is held.
    private func wave(
        _ count: Int, _ session: HTTPSession, _ peer: Peer, _ control: HTTPSession, isGated: Bool = true
    ) async throws -> Wave {
        let url = try peer.url(isGated ? "/hold" : "/bytes/10")
        return try await withThrowingTaskGroup(of: Ending.self) { group in
            for _ in 0..<count {
                group.addTask {
                    do {
                        _ = try await session.text(url)
                        return .answered
                    } catch let error as HTTPError {
                        return .failed(error.code.rawValue)
                    } catch {
                        return .untyped("\(error)")
                    }
                }
            }
            var wave = Wave()
            if isGated {
                try await settle(peer, control)
                let start = ProcessFigures.processorTime
                try await Task.sleep(for: .seconds(3))
                wave.load = (ProcessFigures.processorTime - start).seconds / 3
                _ = try await control.text(try peer.controlURL("/open"))
            }
            for try await ending in group {
                switch ending {
                case .answered: wave.answered += 1
                case .failed(let code): wave.codes[code, default: 0] += 1
                case .untyped(let text):
                    wave.untyped += 1
                    print(text)
                }
            }
            return wave
        }
    }

    /// Waits until the number of held requests stops changing.
    private func settle(_ peer: Peer, _ control: HTTPSession) async throws {
        var last = -1
        for _ in 0..<60 {
            try await Task.sleep(for: .milliseconds(500))
            let held = Int(try await control.text(try peer.controlURL("/held"))) ?? 0
            if held == last, held > 0 { return }
            last = held
        }
    }
}
