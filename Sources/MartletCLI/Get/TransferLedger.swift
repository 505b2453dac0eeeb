import HTTPTypes
import Martlet
import MartletWire
import Synchronization

/// The report of a transfer as it is written, while the transfer runs.
final class TransferLedger: Sendable {
    /// Guards the report: the transfer's own task, and closures it hands out.
    private let state: Mutex<TransferReport>
    /// Guards the watch over the speed, if there is one: the call, and the task that watches.
    private let speed: Mutex<SpeedWatch?>

    init(_ report: TransferReport, speed: SpeedWatch? = nil) {
        state = Mutex(report)
        self.speed = Mutex(speed)
    }

    /// The report as it stands.
    var report: TransferReport { state.withLock { $0 } }

    /// Begins the report of a further try.
    func restart(_ plan: TransferPlan) {
        speed.withLock { $0?.rest() }
        update { report in
            let file = report.file
            report = TransferReport(plan)
            report.file = file
        }
    }

    /// Changes it.
    func update(_ change: (inout TransferReport) -> Void) { state.withLock { change(&$0) } }

    /// Notes how many bytes have moved.
    /// - Returns: Whether the transfer is too slow.
    func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        speed.withLock { $0?.isTooSlow(bytes, at: now) ?? false }
    }

    /// Notes the requests of a call as they go by.
    var watcher: CallWatcher {
        CallWatcher(
            sent: { head in self.update { $0.passedHeads.append(.sent(head)) } },
            connected: { heads in
                self.speed.withLock { $0?.begin(at: .now) }
                self.update { $0.noteTunnel(heads) }
            },
            repeated: { heads in self.update { $0.passedHeads += heads.map { .received($0) } } },
            followed: { hop, exchange in
                self.speed.withLock { $0?.rest() }
                self.update { report in
                    report.steps.append(
                        TransferStep(passedHeads: report.passedHeads, hop: hop, exchange: exchange))
                    report.passedHeads = []
                }
            })
    }
}

/// What is known of a transfer when it is over, be it by failing.
struct TransferReport: Sendable {
    var number: Int
    var givenURL: String
    var url: HTTPURL
    var method: String
    /// The name of the file that was written.
    var file: String?
    var referer: String?
    /// The final head.
    var head: ResponseHead?
    /// The head of the proxy's last answer to CONNECT; `nil` where there was none, as on a connection that is used again.
    var tunnelHead: ResponseHead?
    /// Whether the body was left out, since the response is not as `-z` wants it: as if the status were 304.
    var isSimulatedNotModified = false
    /// All heads, trailers included, as they were shown: their bytes.
    var headByteCount = 0
    var metrics: HTTPMetrics?
    /// Where the answer came from.
    var source = HTTPExchange.Source.network
    /// The requests that others followed.
    var steps: [TransferStep] = []
    /// The heads that went by since the last of them.
    var passedHeads: [PassedHead] = []
    /// The answer with as much of its body as a log takes; `nil` before there is one.
    var exchange: HTTPExchange?
    /// When the try began that it tells of.
    var start = ContinuousClock.now
    var uploadedByteCount: UInt64 = 0
    /// From beginning to end.
    var elapsed = Duration.zero
    var status = ExitStatus.success
    /// What went wrong; empty for nothing.
    var message = ""
    /// OpenSSL's number for why the server's certificate, or an HTTPS proxy's, was refused; 0 where none was.
    var verifyResult = 0
    var proxyVerifyResult = 0
    /// Whether standard output cannot be written to any more.
    var isOutputBroken = false
    /// Whether standard error has been told of it in another form than words.
    var isTold = false

    /// The status, 304 where the body was left out as with one; 0 before there is one.
    var effectiveStatus: Int { isSimulatedNotModified ? 304 : head?.status ?? 0 }

    /// The heads that were sent, all together, in bytes.
    var sentHeadByteCount: Int {
        (steps.flatMap(\.passedHeads) + passedHeads).reduce(0) { $0 + ($1.sentBytes?.count ?? 0) }
    }

    /// Notes what a proxy answered to CONNECT: the request waits until that is done, but was composed before.
    mutating func noteTunnel(_ heads: [ResponseHead]) {
        guard let last = heads.last else { return }
        tunnelHead = last
        let request = passedHeads.popLast()
        passedHeads += heads.map { .received($0) }
        if let request { passedHeads.append(request) }
    }

    /// Notes why a certificate was refused.
    mutating func noteCertificate(_ error: any Error) {
        guard let error = error as? HTTPError, let cause = error.underlying as? TLSError,
            let code = cause.verificationCode
        else { return }
        if error.proxy == nil { verifyResult = code } else { proxyVerifyResult = code }
    }

    init(_ plan: TransferPlan) {
        number = plan.number
        givenURL = plan.givenURL
        url = plan.url
        method = plan.request.method.rawValue
        referer = plan.request.headerFields[.referer]
    }
}

/// A request of a transfer that another followed.
struct TransferStep: Sendable {
    /// The heads that went by for it: of one request, and of another where it had to be sent again.
    var passedHeads: [PassedHead]
    /// Why another followed, and when.
    var hop: HTTPHop
    /// What it was answered with; `nil` where it failed.
    var exchange: HTTPExchange?
}
