import Martlet
import MartletTesting
import Synchronization

/// A scenario with a hundred thousand requests that are cancelled or time out at random moments.
struct Abandoned: SoakScenario {
    /// The way of abandoning requests.
    enum Way: Sendable {
        /// The task that awaits the request is cancelled.
        case cancelling
        /// One of the request's timeouts is short.
        case timingOut
    }

    let name: String
    let way: Way

    private static let workers = 48

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 100_000
        report.note("seed", "\(options.seed)")
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let session = peer.session { configuration in
            // The limit is below the number of workers, so that some requests are queued.
            configuration.pool.connectionsPerHost = 16
        }
        // All resources are in use once before anything is counted.
        _ = try await abandon(min(count, 5000), session, peer, seed: ~options.seed)
        _ = try await session.isIdle()
        ProcessFigures.trimMemory()
        let descriptors = ProcessFigures.descriptors - session.diagnostics.pool.idle
        let before = ProcessFigures.residentBytes
        let timers = session.diagnostics.processTimers

        let tally = try await abandon(count, session, peer, seed: options.seed)
        let isIdle = try await session.isIdle()
        let untrimmed = ProcessFigures.residentBytes - before
        ProcessFigures.trimMemory()
        let growth = ProcessFigures.residentBytes - before
        let diagnostics = session.diagnostics
        report.add(way == .cancelling ? "cancelled" : "timed out", tally.abandoned, exactly: count)
        report.note("completed earlier", "\(tally.finished)")
        for (phase, number) in tally.phases.sorted(by: { $0.value > $1.value }) {
            report.note("timed out while \(phase)", "\(number)")
        }
        report.add("other outcomes", tally.others.description, target: "none", isMet: tally.others.isEmpty)
        report.add(
            "calls and connections at the end", "\(diagnostics)".firstLine, target: "none", isMet: isIdle)
        report.add(
            "leaked descriptors", ProcessFigures.descriptors - diagnostics.pool.idle - descriptors,
            exactly: 0)
        report.add("growth of resident memory", Double(growth) / 1_048_576, atMost: 5, unit: "MiB")
        report.note("before trimming the allocator's memory", "\(untrimmed >> 10) KiB")
        report.note("timers before and after", "\(timers), \(diagnostics.processTimers)")
    }

    private struct Tally: Sendable {
        var abandoned = 0
        var finished = 0
        var phases: [String: Int] = [:]
        var others: [String: Int] = [:]
    }

    /// Makes requests until `count` were abandoned.
    private func abandon(
        _ count: Int, _ session: HTTPSession, _ peer: Peer, seed: UInt64
    ) async throws -> Tally {
        let tally = SharedTally(count)
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<Abandoned.workers {
                group.addTask {
                    var generator = SeededGenerator(seed: seed, stream: UInt64(worker))
                    while tally.wantsMore {
                        let errand = Errand(peer, &generator)
                        switch way {
                        case .cancelling: await cancelled(errand, session, tally, &generator)
                        case .timingOut: await timedOut(errand, session, tally, &generator)
                        }
                    }
                }
            }
        }
        return tally.value
    }

    private func cancelled(
        _ errand: Errand, _ session: HTTPSession, _ tally: SharedTally, _ generator: inout SeededGenerator
    ) async {
        let task = Task { try await errand.run(session) }
        await pause(&generator)
        task.cancel()
        switch await task.result {
        case .success: tally.finished()
        case .failure(is CancellationError): tally.abandoned(nil)
        case .failure(let error): tally.other(error)
        }
    }

    /// Pauses for a random time: nothing, some turns of the executor, or up to forty milliseconds.
    private func pause(_ generator: inout SeededGenerator) async {
        switch generator.next() % 5 {
        case 0: return
        case 1: for _ in 0..<generator.next() % 20 { await Task.yield() }
        case 2: try? await Task.sleep(for: .microseconds(Int64(generator.next() % 1000)))
        case 3: try? await Task.sleep(for: .microseconds(Int64(generator.next() % 6000)))
        default: try? await Task.sleep(for: .microseconds(Int64(generator.next() % 40_000)))
        }
    }

    private func timedOut(
        _ errand: Errand, _ session: HTTPSession, _ tally: SharedTally, _ generator: inout SeededGenerator
    ) async {
        var errand = errand
        var timeouts = Timeouts()
        let short = Duration.microseconds(Int64(generator.next() % 5000))
        switch generator.next() % 6 {
        case 0:
            timeouts.poolWait = short
            timeouts.total = .milliseconds(20)
        case 1:
            timeouts.connect = short
            timeouts.total = .milliseconds(20)
        case 2: timeouts.head = short
        case 3: timeouts.idle = short
        default: timeouts.total = short
        }
        // The total timeout bounds stalled requests in any case.
        if timeouts.total == nil { timeouts.total = .milliseconds(20) }
        errand.options.timeouts = timeouts
        do {
            try await errand.run(session)
            tally.finished()
        } catch let error as HTTPError where error.isTimeout {
            tally.abandoned(error.phase.rawValue)
        } catch {
            tally.other(error)
        }
    }

    /// The shared counts of the workers.
    private final class SharedTally: Sendable {
        /// The counts, which every worker changes.
        private let state = Mutex(Tally())
        private let count: Int

        init(_ count: Int) { self.count = count }

        var value: Tally { state.withLock { $0 } }
        var wantsMore: Bool { state.withLock { $0.abandoned < count } }

        func finished() { state.withLock { $0.finished += 1 } }

        /// Counts an abandoned request unless the limit is reached, because several workers can finish their last one.
        func abandoned(_ phase: String?) {
            state.withLock { tally in
                guard tally.abandoned < count else { return }
                tally.abandoned += 1
                if let phase { tally.phases[phase, default: 0] += 1 }
            }
        }

        func other(_ error: any Error) {
            let text = (error as? HTTPError).map { "\($0.code.rawValue): \($0.message)" } ?? "\(error)"
            state.withLock { $0.others[text, default: 0] += 1 }
        }
    }
}
