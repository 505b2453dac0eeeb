import Martlet
import Synchronization

/// The report of a transfer that runs.
final class TransferReportBuilder: Sendable {
    /// Guards the report: the transfer's own task, and closures it hands out.
    private let state: Mutex<TransferReport>
    /// Guards the watch over the speed, if there is one: the call, and the task that watches.
    private let speed: Mutex<LowSpeedDetector?>

    init(_ plan: TransferPlan) {
        state = Mutex(TransferReport(plan))
        speed = Mutex(LowSpeedDetector(plan.group))
    }

    var report: TransferReport { state.withLock { $0 } }

    /// Begins the report of another attempt.
    func restart(_ plan: TransferPlan) {
        speed.withLock { $0?.rest() }
        update { report in
            let file = report.file
            report = TransferReport(plan)
            report.file = file
        }
    }

    func update(_ change: (inout TransferReport) -> Void) { state.withLock { change(&$0) } }

    /// - Returns: Whether the transfer is too slow.
    func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        speed.withLock { $0?.isTooSlow(bytes, at: now) ?? false }
    }

    /// Records the requests of a call.
    var watcher: CallTracer {
        CallTracer(
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

/// The report of a transfer that succeeded or failed.
struct TransferReport: Sendable {
    let number: Int
    let givenURL: String
    var url: HTTPURL
    var method: String
    /// The name of the file that was written.
    var file: String?
    let referer: String?
    /// The final head.
    var head: ResponseHead?
    /// The head of the proxy's last response to CONNECT; `nil` if there was none, as on a reused connection.
    var tunnelHead: ResponseHead?
    /// Whether the body was left out, as with status 304, since the response does not fulfil `-z`.
    var isSimulatedNotModified = false
    /// The bytes of all heads as they were shown, trailers included.
    var headByteCount = 0
    var metrics: HTTPMetrics?
    var source = HTTPExchange.Source.network
    /// The requests that were followed by others.
    var steps: [TransferStep] = []
    /// The heads since the last step.
    var passedHeads: [IntermediateHead] = []
    /// The response with the part of its body for the log; `nil` before there is one.
    var exchange: HTTPExchange?
    /// The start of the attempt.
    var start = ContinuousClock.now
    var uploadedByteCount: UInt64 = 0
    var elapsed = Duration.zero
    var status = ExitStatus.success
    /// The failure; empty for none.
    var message = ""
    /// OpenSSL's number for the rejection of the certificate of the server, or of an HTTPS proxy; 0 for none.
    var verifyResult = 0
    var proxyVerifyResult = 0
    /// Whether standard output cannot be written any more.
    var isOutputBroken = false
    /// Whether the failure was reported in another form than words.
    var isReported = false

    /// The status, or 304 if the body was left out; 0 before there is one.
    var effectiveStatus: Int { isSimulatedNotModified ? 304 : head?.status ?? 0 }

    var sentHeadByteCount: Int {
        (steps.flatMap(\.passedHeads) + passedHeads).reduce(0) { $0 + ($1.sentBytes?.count ?? 0) }
    }

    /// Records the responses of a proxy to CONNECT, before the head of the request, which was composed earlier.
    mutating func noteTunnel(_ heads: [ResponseHead]) {
        guard let last = heads.last else { return }
        tunnelHead = last
        let request = passedHeads.popLast()
        passedHeads += heads.map { .received($0) }
        if let request { passedHeads.append(request) }
    }

    /// Records the reason that a certificate was rejected.
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

/// A request of a transfer that was followed by another.
struct TransferStep: Sendable {
    /// The heads of the request, and of its repetitions.
    let passedHeads: [IntermediateHead]
    /// The reason and the time of the next request.
    let hop: HTTPHop
    /// The response; `nil` if the request failed.
    let exchange: HTTPExchange?
}
