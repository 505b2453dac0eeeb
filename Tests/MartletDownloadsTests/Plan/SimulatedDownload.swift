import MartletURL
import MartletCaching
import MartletCore
import MartletDiagnostics
import MartletConditions
import MartletStreams
import MartletPool
import MartletTransport
import Testing

@testable import MartletDownloads

/// A download on a manual clock, against a server that is a function of the request.
struct SimulatedDownload {
    /// The server's reply to one request.
    struct Reply {
        /// The response head; `nil` if the connection failed.
        var responseHead: DownloadResponseHead?
        /// The length of the body in bytes.
        var byteCount: UInt64 = 0
        /// The file version of the bytes.
        var version = 1
        /// The time until the response head or the failure.
        var latency = Duration.milliseconds(20)
        /// The number of body bytes before the connection breaks; `nil` for no break.
        var cut: UInt64?
        /// The end of a request without a response, or of the body after its cut.
        var end = DownloadMachine.TransferOutcome.failed(
            HTTPError(.connectionLost, phase: .receivingBody, message: "the connection broke", wasSent: true))
    }

    /// The end of a download.
    enum Outcome {
        case complete
        case failed(HTTPError)
        case stopped
    }

    private struct Transfer {
        let rangeRequest: DownloadRequest
        let reply: Reply
        let answersAt: MonotonicTime
        var isAnswered = false
        var passing: UInt64 = 0
        var comparing: UInt64 = 0
        var delivered: UInt64 = 0
        /// The fraction of a byte that is still to be delivered.
        var credit = 0.0
    }

    var machine: DownloadMachine
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    /// The requests, in order.
    private(set) var rangeRequests: [DownloadRequest] = []
    private(set) var events: [DownloadEvent] = []
    private(set) var checkpoints = 0
    private(set) var outcome: Outcome?
    /// The version of the stored bytes, and their ranges.
    private(set) var version: Int?
    private(set) var disk = RangeSet<UInt64>()
    /// The number of bytes that were written among those of another version.
    private(set) var mixedCount: UInt64 = 0
    private var transfers: [UInt64: Transfer] = [:]
    private var nextTick: MonotonicTime
    /// The end of the running checkpoint; `nil` if none is running.
    private var checkpointEnds: MonotonicTime?
    /// The time since the start, in seconds.
    var seconds: Double { Double(now.nanoseconds - 1_000_000_000) / 1e9 }

    /// The server's reply to the nth request, counted from 1.
    let reply: (DownloadRequest, Int) throws -> Reply
    /// The speed of a transfer, in bytes per second.
    var speed: (UInt64, SimulatedDownload) -> Double = { _, _ in 5e6 }
    /// The effect of the client's own bandwidth limits on the transfers.
    var hold: (SimulatedDownload) -> BandwidthThrottling = { _ in .unlimited }
    /// The duration of a checkpoint.
    var checkpointTime = Duration.zero
    /// The interval between two ticks of the machine.
    var tickInterval = Duration.milliseconds(200)
    /// The random number that full jitter draws.
    var chance = 0.5

    init(
        _ options: DownloadOptions = DownloadOptions(), record: ResumeRecord? = nil,
        from url: String = "http://files.example/a.bin",
        reply: @escaping (DownloadRequest, Int) throws -> Reply
    ) throws {
        machine = DownloadMachine(url: try HTTPURL(url), options: options, now: now)
        nextTick = now
        self.reply = reply
        if let record, options.resumption != .restart { (version, disk) = (1, record.written) }
        perform(machine.start(record, now: now))
    }

    /// The requested ranges, as in their fields, and `-` for the whole file.
    var asked: [String] { rangeRequests.map { ($0.rangeField ?? "-") + ($0.condition == nil ? "" : " if") } }
    /// The reasons of its restarts.
    var restarts: [DownloadEvent.RestartReason] {
        events.compactMap { if case .restarted(let reason) = $0 { reason } else { nil } }
    }
    /// The delays before retries.
    var waits: [Duration] {
        events.compactMap { if case .retrying(_, let delay, _) = $0 { delay } else { nil } }
    }
    var error: HTTPError? { if case .failed(let error)? = outcome { error } else { nil } }
    var isComplete: Bool { if case .complete? = outcome { true } else { false } }
    var activeCount: Int { transfers.count }

    mutating func perform(_ effects: [DownloadMachine.Effect]) {
        for effect in effects {
            switch effect {
            case .begin(let rangeRequest):
                rangeRequests.append(rangeRequest)
                do {
                    let answer = try reply(rangeRequest, rangeRequests.count)
                    transfers[rangeRequest.id] = Transfer(
                        rangeRequest: rangeRequest, reply: answer, answersAt: now.advanced(by: answer.latency))
                } catch {
                    Issue.record("\(error)")
                }
            case .cancel(let id):
                if transfers.removeValue(forKey: id) != nil { end(id, .cancelled) }
            case .checkpoint:
                checkpoints += 1
                checkpointEnds = now.advanced(by: checkpointTime)
            case .complete: outcome = .complete
            case .fail(let error): outcome = .failed(error)
            case .emit(let event): events.append(event)
            }
        }
    }

    private mutating func end(_ id: UInt64, _ end: DownloadMachine.TransferOutcome) {
        transfers[id] = nil
        perform(machine.ended(id, end, now: now, random: chance))
    }

    /// Runs the download until it is over, or a number of seconds has passed.
    mutating func run(seconds limit: Double = 3_600, step: Duration = .milliseconds(20)) {
        let last = now.advanced(by: .milliseconds(Int(limit * 1_000)))
        while outcome == nil, now < last {
            // While all transfers wait for a time, nothing happens before it.
            if transfers.isEmpty, let wake = machine.retryAt { now = max(now, wake) }
            now = now.advanced(by: step)
            advance(step)
            if outcome == nil, transfers.isEmpty, machine.retryAt == nil {
                Issue.record("it is not over, and nothing goes on: \(asked)")
                return
            }
        }
    }

    /// Rejects the complete file, as after a wrong checksum.
    mutating func mismatch() {
        outcome = nil
        perform(
            machine.mismatched(
                HTTPError(.checksumMismatch, phase: .processingResponse, message: "another file", wasSent: true),
                now: now))
    }

    /// Stops the download from outside.
    mutating func stop() {
        perform(machine.stop())
        outcome = .stopped
    }

    mutating func advance(_ step: Duration) {
        if now >= nextTick {
            perform(machine.tick(now, hold: hold(self)))
            nextTick = now.advanced(by: tickInterval)
        }
        if let end = checkpointEnds, now >= end {
            checkpointEnds = nil
            machine.checkpointed(now)
        }
        for id in transfers.keys.sorted() where outcome == nil {
            guard let transfer = transfers[id], now >= transfer.answersAt else { continue }
            if transfer.isAnswered { deliver(id, step) } else { answer(id) }
        }
    }

    private mutating func answer(_ id: UInt64) {
        guard var transfer = transfers[id] else { return }
        guard let responseHead = transfer.reply.responseHead else { return end(id, transfer.reply.end) }
        let (action, ending, effects) = machine.responseReceived(id, responseHead, now: now)
        switch action {
        case .leave:
            perform(effects)
            end(id, ending ?? .cancelled)
        case .take(let passing, let comparing, let restartsTransfer):
            (transfer.passing, transfer.comparing, transfer.isAnswered) = (passing, comparing, true)
            transfers[id] = transfer
            if restartsTransfer { (version, disk) = (transfer.reply.version, RangeSet()) }
            perform(effects)
        }
    }

    private mutating func deliver(_ id: UInt64, _ step: Duration) {
        guard var transfer = transfers[id] else { return }
        let reply = transfer.reply
        transfer.credit += speed(id, self) * Double(step.attoseconds) / 1e18
        let whole = min(reply.byteCount, reply.cut ?? .max)
        var count = min(UInt64(transfer.credit), whole - transfer.delivered)
        transfer.credit -= Double(count)
        transfer.delivered += count
        let skipped = min(count, transfer.passing)
        transfer.passing -= skipped
        count -= skipped
        if transfer.comparing > 0, count > 0 {
            let compared = min(count, transfer.comparing)
            guard reply.version == version else { return end(id, .differs) }
            transfer.comparing -= compared
            count -= compared
        }
        transfers[id] = transfer
        if count > 0 {
            guard let place = machine.accept(id, count, now: now) else { return end(id, .finished) }
            guard !machine.exceedsLimit(place.offset + place.count) else {
                let error = HTTPError(
                    .bodyTooLarge, phase: .receivingBody, message: "too long", wasSent: true)
                return end(id, .rejected(error, .fail))
            }
            if reply.version != version { mixedCount += place.count }
            disk.insert(contentsOf: place.offset..<place.offset + place.count)
            perform(machine.wrote(id, place.offset..<place.offset + place.count))
            guard transfers[id] != nil else { return }
            if !place.wantsMore { return end(id, .finished) }
        }
        guard transfer.delivered == whole else { return }
        end(id, reply.cut.map { $0 < reply.byteCount } == true ? reply.end : .finished)
    }
}
