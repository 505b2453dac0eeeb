import MartletURL
import MartletCaching
package import MartletCore
import MartletDiagnostics
import MartletNetwork
package import MartletConnections
package import MartletTransport

/// What one download does: which requests it makes, which bytes it takes, when it gives up.
///
/// A pure machine: time and chance are passed in, and what is to be done comes out as effects, in order.
package struct DownloadMachine: Sendable {
    /// What is to be done.
    package enum Effect: Sendable {
        /// A transfer begins.
        case begin(DownloadQuestion)
        /// A transfer is of no use any more.
        case cancel(UInt64)
        /// What is written is to be synced and noted.
        case checkpoint
        /// All is written: it is to be verified and published.
        case complete
        /// The download is over, without the file.
        case fail(HTTPError)
        /// Somebody may want to know.
        case tell(DownloadEvent)
    }

    /// How a transfer ended.
    package enum End: Sendable {
        /// Its body is over, or nothing more of it is wanted.
        case finished
        /// It failed.
        case failed(HTTPError)
        /// It was answered with a status that is no success, or something that is no answer.
        case refused(HTTPError, FailureRule.Action)
        /// It was called off.
        case cancelled
        /// There was no connection to be had for it, as there are enough.
        case crowded
        /// The bytes that were compared differ.
        case differs
    }

    /// What is known of the server's ranges.
    enum Ranges: Sendable {
        /// Nothing, or that it has them.
        case usable
        /// It has none, or none that are right.
        case refused
    }

    /// The request without `Range` that is made once where the probe was rejected with a status.
    enum PlainRequest: Sendable {
        case notMade
        /// It was made, and has not failed.
        case made
        /// It failed as well: the status was not about the range.
        case failed
    }

    /// The first range that is asked for, 8 MiB: it proves ranges, length and validator in one round trip.
    package static let probeByteCount: UInt64 = 8 << 20
    /// How much is asked for again where nothing but the bytes themselves can show that they are the same: 64 KiB.
    package static let overlapByteCount: UInt64 = 64 << 10
    /// How often a download may begin, the first time included, since the server had another file or refused its parts. The
    /// last time it comes over one connection.
    package static let generationLimit = 3

    /// Where the file is by the caller's word.
    package let original: HTTPURL
    let options: DownloadOptions
    /// Where it was found; nil where that is not known, or no longer true.
    var place: HTTPURL?
    /// Which bytes are there; nil before the first answer that has some.
    package var plan: SegmentPlan?
    /// What they belong to.
    package var known: Representation?
    /// The state with a strong validator that was given up last. Until a response has a validator of its own, one without
    /// any is not believed to be the file.
    var former: Representation?
    /// The digests that the server gave, of the whole file.
    package var digests: [Checksum] = []
    /// `Last-Modified` of it, in seconds since 1970.
    package var modified: Int64?
    /// Its name by the server's word.
    package var disposition: String?
    var ranges = Ranges.usable
    /// What became of the request without `Range` that follows a rejected probe.
    var plainRequest = PlainRequest.notMade
    /// Whether `If-Range` is left out, since the server answered it with the whole file in the same state: each part has
    /// to prove its state itself.
    var dropsCondition = false
    /// The transfers that are on, and what they asked.
    package var transfers: [UInt64: DownloadQuestion] = [:]
    /// The transfers of them whose bytes come.
    package var receiving: Set<UInt64> = []
    var lastTransfer: UInt64 = 0
    var ramp: ConnectionRamp
    /// How many times it began.
    package var generation: UInt32 = 1
    /// How many of those times count against ``generationLimit``: not those behind a failure, of which there are as many as
    /// the settings say.
    var refusedGenerations = 1
    /// How far bytes came since it began last.
    private var reached: UInt64 = 0
    /// How far they came in any of the earlier beginnings with the same file: what comes again is no progress.
    private var furthest: UInt64 = 0
    /// Whether the file is asked for in one piece, as nothing shows its parts to be of one state; they may be asked for where
    /// that was chosen, and only to go on with.
    var isWhole = false
    private var pacing = PacingJudgement()
    /// Failures since the last byte.
    var failures = 0
    var hasProgressed = false
    var retryAt: MonotonicTime?
    private let began: MonotonicTime
    var lastCheckpoint: MonotonicTime
    /// When the one that is on began.
    var checkpointBegan: MonotonicTime?
    /// How long the last one took.
    private var checkpointTime = Duration.zero
    var hasNews = false
    /// Whether bytes of several requests are in it that nothing proves to be of one state.
    package var isUnproven = false
    var isOver = false

    /// How many bytes earlier runs left, as far as they are kept.
    package var resumedByteCount: UInt64 = 0
    /// How many bytes of bodies came in this run.
    package var receivedByteCount: UInt64 = 0

    /// A download that has not begun.
    package init(url: HTTPURL, options: DownloadOptions, now: MonotonicTime) {
        original = url
        self.options = options
        ramp = ConnectionRamp(limit: min(max(1, options.segments), 64), now: now)
        (began, lastCheckpoint) = (now, now)
    }

    // MARK: Questions

    /// Whether a run that begins later could go on with what is there.
    package var isResumable: Bool {
        guard let plan, plan.writtenCount > 0 else { return false }
        if plan.isComplete { return true }
        return ranges == .usable && (mayAskForParts || options.resumption == .unverified)
    }

    /// Whether all bytes are there, by the only transfer that is on, and there is nothing to verify them by.
    package var isOneComplete: Bool {
        !isOver && transfers.count == 1 && digests.isEmpty && options.checksum == nil
            && plan?.isComplete == true
    }

    /// Whether parts can be asked for of which it is certain, or will be, that they are of the same state.
    var mayAskForParts: Bool {
        guard ranges == .usable, let known else { return false }
        return known.hasCondition || (options.checksum != nil && known.coding == nil)
    }

    private var isSegmented: Bool { mayAskForParts && known?.coding == nil && !isLastGeneration }

    /// Whether it may not begin again but behind a failure. It comes over one connection then: the nodes of a server may each
    /// have a tag of their own for the file, so that what another connection brings is always another file.
    var isLastGeneration: Bool { refusedGenerations >= DownloadMachine.generationLimit }

    // MARK: Beginning

    /// Begins, perhaps with what an earlier run left.
    package mutating func start(_ record: ResumeRecord?, now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        if let record, options.resumption != .restart {
            known = record.representation
            digests = record.digests
            modified = record.modified
            generation = 1
            let plan = SegmentPlan(
                total: record.total, written: record.written, window: window, patience: options.patience)
            self.plan = plan
            isUnproven = record.isUnproven || known?.hasCondition != true
            resumedByteCount = plan.writtenCount
            if plan.isComplete {
                effects = [.tell(.started(resumedByteCount: resumedByteCount))]
                return effects + complete()
            }
            if !isResumable {
                forget()
                effects.append(.tell(.restarted(.notResumable)))
            }
        }
        effects.insert(.tell(.started(resumedByteCount: resumedByteCount)), at: 0)
        return effects + fill(now)
    }

    private var window: UInt64? { options.sequentialWindow.map { UInt64(clamping: $0.bytes) } }

    /// Makes the plan of a file that begins anew.
    mutating func adopt(_ facts: AnswerFacts, total: UInt64?) {
        known = facts.representation
        former = nil
        digests = facts.digests
        modified = facts.modified
        disposition = facts.disposition
        plan = SegmentPlan(total: total, window: window, patience: options.patience)
        found(facts.url)
    }

    /// An answer came from here. Where that is the original URL, its user info is still needed.
    mutating func found(_ url: HTTPURL) { place = url.absoluteForm == original.absoluteForm ? nil : url }

    mutating func forget() {
        if let known, known.hasCondition { former = known }
        plan = nil
        known = nil
        digests = []
        resumedByteCount = 0
        dropsCondition = false
        isUnproven = false
        hasNews = false
    }

    /// It begins anew.
    /// - Parameter isBroken: Whether it does since a transfer failed that cannot be taken up again.
    mutating func count(beginningBehindFailure isBroken: Bool) {
        generation += 1
        furthest = isBroken ? max(furthest, reached) : 0
        reached = 0
        if !isBroken { refusedGenerations += 1 }
    }

    // MARK: Requests

    /// Makes as many requests as there should be.
    mutating func fill(_ now: MonotonicTime) -> [Effect] {
        guard !isOver, retryAt == nil else { return [] }
        var effects: [Effect] = []
        while let question = next(now) {
            transfers[question.id] = question
            effects.append(.begin(question))
        }
        return effects
    }

    private mutating func next(_ now: MonotonicTime) -> DownloadQuestion? {
        // What is asked first has to be answered before anything else is.
        guard let plan else { return transfers.isEmpty ? first(now) : nil }
        guard transfers.count < (isSegmented ? ramp.target : 1), !plan.isComplete else { return nil }
        guard !transfers.keys.contains(where: { !receiving.contains($0) && transfers[$0]?.range == nil })
        else { return nil }
        let id = lastTransfer + 1
        // Together they are as fast as they may be: whoever takes over from another only has it drop what is on its way.
        let (takesOver, inOnePiece) = (!pacing.isHeldBack, !mayAskForParts)
        let others = transfers.isEmpty || !takesOver ? 0 : ramp.room(beside: transfers.count + 1)
        let claim = self.plan?.claim(
            id, takesOver: takesOver, inOnePiece: inOnePiece, others: others, now: now)
        guard let range = claim else { return nil }
        lastTransfer = id
        var question = DownloadQuestion(
            id: id, url: place ?? original, range: range, condition: dropsCondition ? nil : known?.condition,
            time: now)
        if !mayAskForParts {
            // Nothing but the bytes themselves can show that they are the same.
            let written = self.plan?.writtenCount(before: range.lowerBound) ?? 0
            question.overlap = min(written, DownloadMachine.overlapByteCount)
            question.range = range.lowerBound - question.overlap..<range.upperBound
        }
        return question
    }

    private mutating func first(_ now: MonotonicTime) -> DownloadQuestion {
        lastTransfer += 1
        let asksForPart = ranges == .usable && ramp.limit > 1 && !isWhole && !isLastGeneration
        return DownloadQuestion(
            id: lastTransfer, url: place ?? original,
            range: asksForPart ? 0..<DownloadMachine.probeByteCount : nil, condition: nil, time: now)
    }

    /// The network's condition allows so many connections; `nil` for as many as the options say.
    package mutating func allow(segments: Int?, now: MonotonicTime) { ramp.allow(segments, now: now) }

    /// Looks at what time has brought: another connection, the end of a wait, a checkpoint.
    /// - Parameter hold: What limits of our own did to the transfers since the last look.
    package mutating func tick(_ now: MonotonicTime, hold: BandwidthHold = .unlimited) -> [Effect] {
        guard !isOver else { return [] }
        pacing.look(hold)
        if let retryAt, now >= retryAt { self.retryAt = nil }
        if isSegmented { ramp.look(active: receiving.count, isHeldBack: pacing.isHeldBack, now: now) }
        var effects = fill(now)
        if hasNews, checkpointBegan == nil, now.since(lastCheckpoint) >= interval {
            (hasNews, checkpointBegan) = (false, now)
            effects.append(.checkpoint)
        }
        return effects
    }

    /// How long after the last checkpoint the next one is due. At first they come more often, so that of a download that is
    /// killed early most is kept, too: what came in a 64th of the time is lost at most, or in a tenth of a second, and what came
    /// until the clock was looked at and all was synced. A disk that is slow to sync has no more than a 16th of the time to do
    /// it, as far as the options allow.
    private var interval: Duration {
        let wanted = max(.milliseconds(50), options.checkpointInterval)
        return min(wanted, max(.milliseconds(100), lastCheckpoint.since(began) / 64, checkpointTime * 16))
    }

    /// When a wait ends; nil where none is on.
    package var wake: MonotonicTime? { retryAt }

    /// A checkpoint is done.
    package mutating func checkpointed(_ now: MonotonicTime) {
        if let began = checkpointBegan { checkpointTime = now.since(began) }
        (checkpointBegan, lastCheckpoint) = (nil, now)
    }

    // MARK: Bytes

    /// Bytes of a transfer have come.
    /// - Returns: Where they belong, how many are wanted, and whether more are; nil for a transfer that is of no use.
    package mutating func accept(
        _ id: UInt64, _ count: UInt64, now: MonotonicTime
    ) -> (offset: UInt64, count: UInt64, wantsMore: Bool)? {
        receivedByteCount += count
        guard !isOver, transfers[id] != nil, let place = plan?.accept(id, count, now: now) else { return nil }
        ramp.add(place.count)
        if place.count > 0 {
            reached = max(reached, place.offset + place.count)
            if reached > furthest { hasProgressed = true }
        }
        return place
    }

    /// Whether bytes up to this offset are more than there may be.
    package func exceedsLimit(_ end: UInt64) -> Bool { end > UInt64(clamping: options.byteLimit.bytes) }

    /// Bytes of a transfer are written.
    package mutating func wrote(_ id: UInt64, _ range: Range<UInt64>) -> [Effect] {
        guard !isOver, transfers[id] != nil else { return [] }
        // Not when they come: a record claims what is written.
        hasNews = true
        guard let loser = plan?.wrote(id, range) else { return [] }
        return [.cancel(loser)]
    }

    // MARK: The end

    /// All bytes are there.
    mutating func complete() -> [Effect] {
        isOver = true
        return cancelAll() + [.complete]
    }

    /// It is given up.
    mutating func fail(_ error: HTTPError) -> [Effect] {
        isOver = true
        var failure = error
        failure.keptByteCount = isResumable ? plan?.writtenCount : nil
        if let kept = failure.keptByteCount { failure.message += "; \(kept) bytes are kept" }
        return cancelAll() + [.fail(failure)]
    }

    mutating func cancelAll(but id: UInt64? = nil) -> [Effect] {
        let others = transfers.keys.filter { $0 != id }.sorted()
        for other in others {
            transfers[other] = nil
            receiving.remove(other)
        }
        return others.map(Effect.cancel)
    }

    /// It is stopped from outside.
    package mutating func stop() -> [Effect] {
        isOver = true
        return cancelAll()
    }

    /// The checksum was wrong: where bytes of several requests might be of several states, it begins once more.
    package mutating func mismatched(_ error: HTTPError, now: MonotonicTime) -> [Effect] {
        guard isUnproven, !isLastGeneration else {
            isOver = true
            return [.fail(error)]
        }
        isOver = false
        ranges = .refused
        count(beginningBehindFailure: false)
        forget()
        ramp.restart(now: now)
        return [.tell(.restarted(.changed))] + fill(now)
    }
}
