import Martlet
@testable import MartletDownloads
import MartletTestSupport
import MartletTransport
import Synchronization

/// Downloads that fetch nothing and end when a test says so.
///
/// They are identified by the last component of their URL's path.
final class FakeDownloads: Sendable {
    /// The way that a run ends.
    enum Outcome: Equatable, Sendable {
        case finish
        case fail(HTTPError.Code)
    }

    /// The history of a download, over all of its runs.
    struct Record: Sendable {
        var runs = 0
        var discards = 0
        var isRunning = false
        var isFinished = false
        var plans: [DownloadJob.Plan] = []
        var moves: [String] = []
        var bandwidths: [Int?] = []
        /// The publication records that its runs received.
        var publications: [PublicationRecord] = []
        /// The number of stored bytes.
        var kept: UInt64 = 0
    }

    private struct State {
        var records: [String: Record] = [:]
        var gates: [String: CurrentValue<Outcome?>] = [:]
        var outcome: Outcome?
        var mostRunning = 0
        var mostPerHost = 0
        var running: [String: Int] = [:]
        var faults: [String] = []
    }

    private let state = Mutex(State())
    /// The names of the running downloads.
    let running = CurrentValue<Set<String>>([])

    /// The factory for the manager.
    var factory: DownloadFactory {
        { plan, status, _ in FakeDownload(plan: plan, status: status, all: self) }
    }

    func record(_ name: String) -> Record { state.withLock { $0.records[name] ?? Record() } }

    /// The maximum number of concurrent runs, in all and per host.
    var most: (running: Int, perHost: Int) { state.withLock { ($0.mostRunning, $0.mostPerHost) } }

    /// The violated invariants so far.
    var faults: [String] { state.withLock { $0.faults } }

    /// Ends the current run of a download, or its next one.
    func end(_ name: String, _ outcome: Outcome) {
        gate(name).update { outcome }
    }

    /// Ends all current and future runs immediately.
    func endAll(_ outcome: Outcome) {
        let gates = state.withLock { state in
            state.outcome = outcome
            return state.gates.values
        }
        for gate in gates { gate.update { outcome } }
    }

    /// Waits until exactly these downloads run.
    func run(_ names: String...) async {
        let expected = Set(names)
        _ = await running.next { $0 == expected }
    }

    fileprivate func gate(_ name: String) -> CurrentValue<Outcome?> {
        state.withLock { state in
            if let gate = state.gates[name] { return gate }
            let gate = CurrentValue<Outcome?>(state.outcome)
            state.gates[name] = gate
            return gate
        }
    }

    fileprivate func change(_ name: String, _ body: (inout Record) -> Void) {
        state.withLock { body(&$0.records[name, default: Record()]) }
    }

    fileprivate func begin(_ name: String, _ host: String) {
        state.withLock { state in
            var record = state.records[name, default: Record()]
            if record.isRunning { state.faults.append("\(name) runs twice") }
            if record.isFinished { state.faults.append("\(name) runs though it is finished") }
            record.isRunning = true
            record.runs += 1
            state.records[name] = record
            state.running[host, default: 0] += 1
            state.mostPerHost = max(state.mostPerHost, state.running[host, default: 0])
            state.mostRunning = max(state.mostRunning, state.running.values.reduce(0, +))
        }
        showRunning()
    }

    fileprivate func end(_ name: String, _ host: String, isFinished: Bool) {
        state.withLock { state in
            state.records[name]?.isRunning = false
            if isFinished { state.records[name]?.isFinished = true }
            state.running[host, default: 0] -= 1
            // An outcome applies to one run.
            if state.outcome == nil { state.gates[name] = nil }
        }
        showRunning()
    }

    fileprivate func discard(_ name: String) {
        state.withLock { state in
            if state.records[name]?.isRunning == true {
                state.faults.append("\(name) is removed while it runs")
            }
            state.records[name, default: Record()].discards += 1
            state.records[name]?.kept = 0
        }
    }

    private func showRunning() {
        running.update { state.withLock { Set($0.records.filter { $0.value.isRunning }.keys) } }
    }
}

/// A download that fetches nothing.
private final class FakeDownload: RunnableDownload {
    let plan: DownloadJob.Plan
    let status: DownloadStatus
    let all: FakeDownloads
    private let place: Mutex<HTTPURL>
    private let known: Mutex<FilePath?>

    init(plan: DownloadJob.Plan, status: DownloadStatus, all: FakeDownloads) {
        self.plan = plan
        self.status = status
        self.all = all
        place = Mutex(plan.url)
        if case .file(let path) = plan.target.kind { known = Mutex(path) } else { known = Mutex(nil) }
    }

    private var name: String { plan.url.path.split(separator: "/").last.map { String($0) } ?? "" }

    var path: FilePath? { known.withLock { $0 } }

    func run(onPublication: DownloadJob.PublicationHandler?) async throws -> DownloadResult {
        if let publication = plan.publication {
            all.change(name) { $0.publications.append(publication) }
            return publication.result
        }
        let url = place.withLock { $0 }
        let (name, host) = (name, "\(url.host):\(url.port)")
        all.change(name) { $0.plans.append(self.plan) }
        all.begin(name, host)
        var isFinished = false
        defer { all.end(name, host, isFinished: isFinished) }
        var progress = DownloadProgress()
        progress.resumedByteCount = all.record(name).kept
        progress.completedByteCount = min(90, progress.resumedByteCount + 10)
        progress.totalByteCount = 100
        all.change(name) { $0.kept = progress.completedByteCount }
        if case .directory(let directory) = plan.target.kind { known.withLock { $0 = directory.appending(name) } }
        let begun = progress
        status.updateProgress { begun }
        status.events.add(.started(resumedByteCount: progress.resumedByteCount))
        let gate = all.gate(name)
        switch await gate.next(where: { $0 != nil })?.value {
        case .finish:
            status.become(.verifying)
            let result = DownloadResult(
                path: path ?? "/", byteCount: 100, resumedByteCount: progress.resumedByteCount,
                receivedByteCount: 100 - progress.resumedByteCount, url: url)
            try await onPublication?(
                PublicationRecord(
                    result: result, part: FileIdentity(number: 7, device: 1, modificationTime: -5)))
            isFinished = true
            return result
        case .fail(let code): throw HTTPError(code, phase: .receivingBody, message: "as the test says")
        case nil: throw CancellationError()
        }
    }

    func move(to url: HTTPURL) {
        place.withLock { $0 = url }
        all.change(name) { $0.moves.append(url.absoluteString) }
    }

    func setBandwidth(_ rate: BandwidthRate?) {
        all.change(name) { $0.bandwidths.append(rate?.bytesPerSecond) }
    }

    func discard() async { all.discard(name) }
}
