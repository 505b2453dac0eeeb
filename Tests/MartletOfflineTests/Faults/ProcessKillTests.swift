import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import SystemPackage
import Testing

@testable import MartletOffline

@Suite("Offline queue: killed processes and power cuts")
struct ProcessKillTests {
    /// A moment at which a process is killed.
    enum Moment: CaseIterable {
        /// After the request has arrived, before it takes effect.
        case before
        /// After the request has taken effect, before the response.
        case during
        /// While the response is being sent.
        case after
    }

    /// Kills the process that sends the request of a given number.
    private final class Trap: Sendable {
        private struct State {
            var countdown = 0
            var moment = Moment.before
            var victim: pid_t = 0
        }

        private let state = Mutex(State())

        func set(_ countdown: Int, _ moment: Moment, _ victim: pid_t) {
            state.withLock { $0 = State(countdown: countdown, moment: moment, victim: victim) }
        }

        /// Returns the process to kill if this is the moment.
        func victim(at moment: Moment) -> pid_t? {
            state.withLock { state in
                guard state.moment == moment, state.countdown > 0 else { return nil }
                state.countdown -= 1
                return state.countdown == 0 ? state.victim : nil
            }
        }
    }

    @Test(
        "A process killed before, during or after sending causes each effect exactly once",
        arguments: Moment.allCases)
    func killed(_ moment: Moment) async throws {
        let serverLog = ServerLog()
        let trap = Trap()
        try await OfflineScene.run { request in
            if let victim = trap.victim(at: .before) { kill(victim, SIGKILL) }
            try await serverLog.note(request)
            if let victim = trap.victim(at: .during) { kill(victim, SIGKILL) }
            if let victim = trap.victim(at: .after) {
                Task { kill(victim, SIGKILL) }
            }
            return .text("taken")
        } _: { scene in
            let submitting = try await OfflineChild.run(
                ["submit", scene.directory.path, scene.origin.url("/n/"), "12", "3"])
            #expect(submitting.status == 0)
            let keys = submitting.lines.compactMap { line in
                line.hasPrefix("submitted") ? String(line.split(separator: " ")[2]) : nil
            }
            #expect(keys.count == 12)
            for countdown in [1, 3, 2, 4] {
                let child = try await OfflineChild.start(["run", scene.directory.path])
                trap.set(countdown, moment, child.identifier)
                await child.end()
            }
            trap.set(0, moment, 0)
            let last = try await OfflineChild.run(["run", scene.directory.path])
            #expect(last.status == 0, "\(last.lines)")
            #expect(last.lines.allSatisfy { !$0.hasPrefix("dead") && !$0.hasPrefix("uncertain") })
            #expect(serverLog.effects.sorted() == (0..<12).map { "number \($0)" }.sorted())
            #expect(Set(serverLog.entries.compactMap(\.key)) == Set(keys), "always the same keys")
            #expect(try scene.directory.names() == [])
            for lane in 0..<3 {
                let own = serverLog.effects.compactMap { Int($0.dropFirst(7)) }.filter { $0 % 3 == lane }
                #expect(own == own.sorted(), "in order")
            }
        }
    }

    @Test("Every request that a process reported as submitted is stored, whenever it is killed")
    func killedSubmitting() async throws {
        let serverLog = ServerLog()
        try await OfflineScene.run { request in
            try await serverLog.note(request)
            return .text("taken")
        } _: { scene in
            var said: [String] = []
            for count in [1, 3, 7, 12] {
                let child = try await OfflineChild.start(
                    ["both", scene.directory.path, scene.origin.url("/n/"), "1000", "2"])
                var own = 0
                for await line in child.lines where line.hasPrefix("submitted") {
                    said.append(String(line.split(separator: " ")[2]))
                    own += 1
                    if own == count { child.killAtOnce() }
                }
                await child.end()
            }
            let last = try await OfflineChild.run(["run", scene.directory.path])
            #expect(last.status == 0)
            let came = serverLog.entries.compactMap(\.key)
            #expect(Set(said).isSubset(of: Set(came)), "none is lost")
            // The serverLog applies each key once anyway. The client is tested: one key, one body.
            let pairs = Dictionary(serverLog.entries.map { ($0.key ?? "", $0.body) }) { first, second in
                #expect(first == second)
                return first
            }
            #expect(pairs.count >= said.count)
        }
    }

    @Test("A request without a key whose process was killed while sending is uncertain in the next one")
    func killedWithoutKey() async throws {
        try await OfflineScene.run { scene in
            let keeping = try await scene.queue { $0.sendsRequests = false }
            try await keeping.submit(
                try scene.request(), body: .text("once"), as: OfflineSubmission(tag: "once", key: .none))
            try await keeping.submit(
                try scene.request(.put), body: .text("again"), as: OfflineSubmission(tag: "again", key: .none)
            )
            await keeping.close()
            // The record of a process that ended after it had marked the request as sent and before the response.
            for number in 1...2 {
                var request = try QueuedRequestCodec.decode(scene.directory.contents(of: "\(number).request"))
                request.stage = .sending
                request.attempts = 1
                try scene.directory.write(try QueuedRequestCodec.encode(request), to: "\(number).request")
            }
            let queue = try await scene.queue()
            let (ticket, letter) = try await queue.uncertain()
            #expect(ticket.tag == "once")
            #expect(letter.reason == .interrupted)
            #expect(try await queue.delivered().keys.first == "again")
            try await queue.drained
            #expect(scene.origin.requests.map(\.method) == [.put])
            // The user decides.
            try await queue.retry(ticket.id)
            try await queue.drained
            #expect(scene.origin.requests.map(\.method) == [.put, .post])
            await queue.close()
        }
    }

    /// Records the file changes of a queue that submits three requests, delivers one and gets another rejected.
    private static func history() async throws -> [RecordingFileSystem.Change] {
        let files = RecordingFileSystem()
        try await OfflineScene.run { request in
            .text("", status: request.path == "/bad" ? 400 : 200)
        } _: { scene in
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: scene.directory.directory,
                options: OfflineQueueOptions(backoff: OfflineScene.soon), files: files)
            for path in ["/good", "/bad", "/large"] {
                let body = path == "/large" ? HTTPBody.bytes(Array(repeating: 1, count: 30_000)) : .text("x")
                try await queue.submit(try scene.request(.post, path), body: body, lane: "one", tag: path)
            }
            try await queue.drained
            await queue.close()
        }
        return files.changes
    }

    @Test("After any kill or power cut a queue opens, and no record is partial")
    func powerCuts() async throws {
        let changes = try await Self.history()
        try #require(changes.count > 30)
        var cuts: [PowerLoss] = []
        for count in 0...changes.count {
            cuts.append(.after(count))
            for seed in UInt64(0)..<4 { cuts.append(.unsynced(count, seed: seed &+ 31)) }
        }
        var found = 0
        for cut in cuts {
            let directory = try OfflineDirectory()
            for (name, bytes) in cut.files(after: changes) { try directory.write(bytes, to: name) }
            let queue = try await OfflineQueue(
                session: OfflineScene.session, directory: directory.directory,
                options: OfflineQueueOptions(sendsRequests: false))
            for entry in await queue.entries {
                found += 1
                #expect(["/good", "/bad", "/large"].contains(entry.ticket.tag ?? ""), "\(cut)")
                if entry.ticket.tag == "/large" {
                    #expect(directory.byteCount(of: "\(entry.ticket.id).body") == 30_000, "\(cut)")
                }
            }
            await queue.close()
            #expect(!(try directory.names()).contains { $0.hasSuffix(".new") }, "\(cut)")
            for await event in queue.events {
                if case .recordQuarantined = event { Issue.record("\(cut): \(event)") }
            }
        }
        #expect(found > 50)
    }
}
