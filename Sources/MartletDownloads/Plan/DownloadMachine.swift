package import MartletCore

/// The state machine of one download: its requests, the bytes it accepts, and its failure. It is pure: time and random
/// numbers are passed in, and the actions are returned as effects, in order.
package struct DownloadMachine: Sendable {
    /// An action that the run performs.
    package enum Effect: Sendable {
        /// Start a transfer.
        case begin(DownloadRequest)
        /// Cancel a transfer that is no longer useful.
        case cancel(UInt64)
        /// Sync and record the written bytes.
        case checkpoint
        /// Verify and publish the file: all bytes are written.
        case complete
        /// End the download without the file.
        case fail(HTTPError)
        /// Emit an event.
        case emit(DownloadEvent)
    }

    package enum TransferOutcome: Sendable {
        /// The body ended, or the rest is not wanted.
        case finished
        case failed(HTTPError)
        /// The status is not a success, or the response is invalid.
        case rejected(HTTPError, DownloadRetryRule.Action)
        case cancelled
        /// No connection slot was free, or the response is of no use in addition to other transfers.
        case crowded
        /// The compared bytes differ.
        case differs
    }

    /// The state of the request without `Range`, made once after a status rejected a range.
    enum PlainRequest: Sendable {
        case notMade
        /// The request was made, and has no response yet.
        case made
        /// The file arrives. It is unknown whether the server has ranges: they are requested only to resume.
        case succeeded
        /// The status was not about the range: the request failed as well, or the server has sent a part.
        case unneeded
    }

    /// The first requested range, 8 MiB. Its response shows length, validator and support of ranges.
    package static let probeByteCount: UInt64 = 8 << 20
    /// The number of bytes requested again if only the bytes themselves can show that the file is unchanged: 64 KiB.
    package static let overlapByteCount: UInt64 = 64 << 10
    /// The maximum number of starts: the first, and those after changes or rejected parts. The last has one connection.
    package static let generationLimit = 3
    /// The URL given by the caller.
    package let original: HTTPURL
    let options: DownloadOptions
    /// The URLs of the file: ``original``, then the mirrors in the order of preference.
    package var sources: [DownloadSource]
    /// The index of the URL whose responses describe the file.
    var lead = 0
    /// Whether the file is fetched from one URL only, because bytes of several did not match the checksum.
    var isExclusive = false
    /// The required length of the file; `nil` for any.
    var expectedByteCount: UInt64?
    /// The plan of the bytes; `nil` before the first response with bytes.
    package var plan: SegmentPlan?
    /// The representation that the bytes belong to, as ``lead`` describes it.
    package var known: Representation?
    /// The last discarded representation with a strong validator, until a response is accepted. Until then a response
    /// without a validator is not accepted as the file.
    var former: Representation?
    /// The digests of the whole file that the server announced.
    package var digests: [Checksum] = []
    /// The value of `Last-Modified`, in seconds since 1970.
    package var modified: Int64?
    /// The value of `Content-Disposition`; `nil` without one.
    package var disposition: String?
    /// The value of `Content-Type`; `nil` without one, and for bytes of an earlier run.
    var contentType: String?
    /// The request without `Range` after a rejected range.
    var plainRequest = PlainRequest.notMade
    /// The error of the rejected range, if bytes were already received: that of the download if the request without
    /// `Range` fails as well.
    var rangeError: HTTPError?
    /// The requests of the active transfers.
    package var transfers: [UInt64: DownloadRequest] = [:]
    /// The transfers that receive bytes.
    package var receiving: Set<UInt64> = []
    var lastTransfer: UInt64 = 0
    var ramp: ConnectionRamp
    /// The number of starts.
    package var generation: UInt32 = 1
    /// The number of starts that count against ``generationLimit``: not those after a failure, which the options limit.
    var countedGenerations = 1
    /// The end of the received bytes since the last start.
    private var reached: UInt64 = 0
    /// The highest ``reached`` of earlier starts with the same file: receiving those bytes again is not progress.
    private var furthest: UInt64 = 0
    /// Whether the file is requested in one piece, except to resume: nothing proves that its parts belong together.
    var isWhole = false
    private var pacing = ThrottlingDetector()
    /// The number of failures since the last new byte.
    var failures = 0
    var hasProgressed = false
    /// The end of a delay; `nil` without a delay.
    package var retryAt: MonotonicTime?
    private let began: MonotonicTime
    var lastCheckpoint: MonotonicTime
    /// The start of the current checkpoint.
    var checkpointBegan: MonotonicTime?
    /// The duration of the last checkpoint.
    private var checkpointTime = Duration.zero
    var hasUnsavedProgress = false
    /// Whether the file has bytes of several requests that are not proven to belong to one representation.
    package var isUnproven = false
    var isOver = false
    /// The number of reused bytes of earlier runs.
    package var resumedByteCount: UInt64 = 0
    /// The number of bytes of response bodies in this run.
    package var receivedByteCount: UInt64 = 0

    /// Creates a download that has not started.
    package init(url: HTTPURL, options: DownloadOptions, now: MonotonicTime) {
        (original, self.options, expectedByteCount) = (url, options, options.expectedByteCount)
        sources = [DownloadSource(url)]
        // The download may have moved to an https URL since its mirrors were checked.
        let needsTLS = options.needsSecureMirrors(of: url)
        for mirror in options.mirrors where !(needsTLS && mirror.scheme == .http) {
            guard !sources.contains(where: { $0.url.absoluteForm == mirror.absoluteForm }) else { continue }
            sources.append(DownloadSource(mirror))
        }
        ramp = ConnectionRamp(limit: min(max(1, options.segments), 64), now: now)
        (began, lastCheckpoint) = (now, now)
    }

    // MARK: Inspection

    /// The URL at which the lead's file was found; `nil` if it is unknown or no longer valid.
    var foundURL: HTTPURL? {
        get { sources[lead].foundURL }
        set { sources[lead].foundURL = newValue }
    }

    /// The URL from which the file was received, without user info.
    package var resultURL: HTTPURL { foundURL ?? sources[lead].url.withoutUserInfo }

    /// Whether the lead supports ranges correctly, as far as known.
    var supportsRanges: Bool {
        get { sources[lead].supportsRanges }
        set { sources[lead].supportsRanges = newValue }
    }

    /// Whether a later run could reuse the bytes.
    package var isResumable: Bool {
        guard let plan, plan.writtenCount > 0 else { return false }
        return plan.isComplete || supportsRanges && (mayRequestRanges || options.resumption == .unverified)
            || usesMirrors
    }

    /// Whether the only transfer has written all bytes, and there is no checksum to verify.
    package var isOneComplete: Bool {
        !isOver && transfers.count == 1 && digests.isEmpty && options.checksum == nil && plan?.isComplete == true
    }

    /// Whether parts can be requested: a condition makes their representation certain, or a checksum will verify it.
    var mayRequestRanges: Bool {
        guard supportsRanges, let known else { return false }
        return known.hasCondition || (options.checksum != nil && known.coding == nil && !isExclusive)
    }

    var isSegmented: Bool {
        mayRequestRanges && known?.coding == nil && !isLastGeneration && plainRequest != .succeeded
    }

    /// Whether the download may restart only after a failure. It then uses one connection, because each node of a
    /// server may have its own tag for the file.
    var isLastGeneration: Bool { countedGenerations >= DownloadMachine.generationLimit }

    // MARK: Starting

    /// Starts, with the bytes of an earlier run if there are any.
    package mutating func start(_ record: ResumeRecord?, now: MonotonicTime) -> [Effect] {
        var effects: [Effect] = []
        if let record, options.resumption != .restart {
            (known, digests, modified) = (record.representation, record.digests, record.modified)
            let plan = SegmentPlan(
                total: record.total, written: record.written, window: window,
                takeoverThreshold: options.takeoverThreshold)
            self.plan = plan
            restore(record)
            isUnproven = record.isUnproven || known?.hasCondition != true
            resumedByteCount = plan.writtenCount
            // The checksum that would have verified bytes of several servers may be gone.
            let isMixed = record.isUnproven && record.sources.count > 1 && options.checksum == nil && digests.isEmpty
            let isWrong = isMixed || plan.total.map { wrongLength($0, original) != nil } ?? false
            if plan.isComplete, !isWrong { return [.emit(.started(resumedByteCount: resumedByteCount))] + complete() }
            if isWrong || !isResumable {
                forget()
                effects.append(.emit(.restarted(.notResumable)))
            }
        }
        effects.insert(.emit(.started(resumedByteCount: resumedByteCount)), at: 0)
        return effects + fill(now)
    }

    private var window: UInt64? { options.sequentialWindow.map { UInt64(clamping: $0.bytes) } }

    /// Creates the plan of a file that is fetched from its start.
    mutating func adopt(_ responseHead: DownloadResponseHead, total: UInt64?) {
        (known, former, digests) = (responseHead.representation, nil, responseHead.digests)
        (modified, disposition) = (responseHead.modified, responseHead.disposition)
        contentType = responseHead.contentType
        rangeError = nil
        plan = SegmentPlan(total: total, window: window, takeoverThreshold: options.takeoverThreshold)
        sources[lead].representation = known
        found(responseHead.url, by: lead)
    }

    /// Records the URL of a response. The given URL is not replaced: its user info is still needed.
    mutating func found(_ url: HTTPURL, by index: Int) {
        sources[index].foundURL = url.absoluteForm == sources[index].url.absoluteForm ? nil : url
    }

    mutating func forget() {
        if let known, known.hasCondition { former = known }
        (plan, known, digests) = (nil, nil, [])
        resumedByteCount = 0
        (isUnproven, hasUnsavedProgress) = (false, false)
        for index in sources.indices {
            (sources[index].representation, sources[index].dropsCondition) = (nil, false)
            // A mirror is compared with the next file again.
            if sources[index].use == .wholeFile { sources[index].use = .parts }
        }
    }

    /// Counts a restart, forgets the file, and reports the reason.
    /// - Parameter isBroken: Whether the reason is a failed transfer that cannot be resumed.
    mutating func startGeneration(
        _ reason: DownloadEvent.RestartReason, afterFailure isBroken: Bool = false, _ now: MonotonicTime
    ) -> [Effect] {
        generation += 1
        furthest = isBroken ? max(furthest, reached) : 0
        reached = 0
        if !isBroken { countedGenerations += 1 }
        forget()
        receiving = []
        ramp.restart(now: now)
        return [.emit(.restarted(reason))]
    }

    // MARK: Requests

    /// Makes requests up to the wanted number.
    mutating func fill(_ now: MonotonicTime) -> [Effect] {
        guard !isOver, retryAt == nil else { return [] }
        var effects: [Effect] = []
        while let request = next(now) {
            transfers[request.id] = request
            effects.append(.begin(request))
        }
        return effects
    }

    private mutating func next(_ now: MonotonicTime) -> DownloadRequest? {
        // No other request is made before the response to the first one.
        guard let plan else { return transfers.isEmpty ? first(now) : nil }
        guard transfers.count < (isSegmented || usesMirrors ? ramp.target : 1), !plan.isComplete else { return nil }
        guard !transfers.keys.contains(where: { !receiving.contains($0) && transfers[$0]?.range == nil }) else {
            return nil
        }
        guard let source = sourceOfNextPart(now) else { return nil }
        let id = lastTransfer + 1
        // Under our own rate limit, taking over a range only discards bytes in transit.
        let (takesOver, inOnePiece) = (!pacing.isHeldBack, source == lead && !mayRequestRanges)
        let others = transfers.isEmpty || !takesOver ? 0 : ramp.room(beside: transfers.count + 1)
        let claim = self.plan?.claim(id, takesOver: takesOver, inOnePiece: inOnePiece, others: others, now: now)
        guard let range = claim else { return nil }
        lastTransfer = id
        let condition = (source == lead ? known : sources[source].representation)?.condition
        var request = makeRequest(
            id, to: source, range, condition: sources[source].dropsCondition ? nil : condition, now)
        if inOnePiece {
            // Only the bytes themselves can show that the file is unchanged.
            let written = self.plan?.writtenCount(before: range.lowerBound) ?? 0
            request.overlap = min(written, DownloadMachine.overlapByteCount)
            request.range = range.lowerBound - request.overlap..<range.upperBound
        }
        return request
    }

    private mutating func first(_ now: MonotonicTime) -> DownloadRequest {
        lastTransfer += 1
        let requestsRange =
            supportsRanges && ramp.limit > 1 && !isWhole && !isLastGeneration && plainRequest != .succeeded
        return makeRequest(
            lastTransfer, to: lead, requestsRange ? 0..<DownloadMachine.probeByteCount : nil, condition: nil, now)
    }

    private func makeRequest(
        _ id: UInt64, to source: Int, _ range: Range<UInt64>?, condition: String?, _ now: MonotonicTime
    ) -> DownloadRequest {
        let url = sources[source].url
        return DownloadRequest(
            id: id, url: sources[source].foundURL ?? url, range: range, condition: condition, time: now,
            source: source, isForeign: source != 0 && url.origin != original.origin,
            isAdditional: plan != nil && transfers.values.contains { $0.source == source }, userInfo: url.userInfo)
    }

    /// Applies the number of connections that the condition of the network allows; `nil` for that of the options.
    package mutating func allow(segments: Int?, now: MonotonicTime) { ramp.allow(segments, now: now) }

    /// Handles the passing of time: another connection, the end of a delay, a checkpoint.
    /// - Parameter hold: The effect of our own limits on the transfers since the last tick.
    package mutating func tick(_ now: MonotonicTime, hold: BandwidthThrottling = .unlimited) -> [Effect] {
        guard !isOver else { return [] }
        pacing.sample(hold)
        if let retryAt, now >= retryAt { self.retryAt = nil }
        if isSegmented || usesMirrors { ramp.update(active: receiving.count, isHeldBack: pacing.isHeldBack, now: now) }
        var effects =
            hasMirrors && transfers.isEmpty ? proceedWithMirrors(afterFailure: true, now) : fill(now)
        if hasUnsavedProgress, checkpointBegan == nil, now.since(lastCheckpoint) >= interval {
            (hasUnsavedProgress, checkpointBegan) = (false, now)
            effects.append(.checkpoint)
        }
        return effects
    }

    /// The time from the last checkpoint to the next one: at most that of the options. At first it is a 64th of the
    /// elapsed time, at least 100 ms, so that most of a download that is killed early survives; if syncs are slow, 16
    /// times the duration of the last one.
    private var interval: Duration {
        let wanted = max(.milliseconds(50), options.checkpointInterval)
        return min(wanted, max(.milliseconds(100), lastCheckpoint.since(began) / 64, checkpointTime * 16))
    }

    /// Records the end of a checkpoint.
    package mutating func checkpointed(_ now: MonotonicTime) {
        if let began = checkpointBegan { checkpointTime = now.since(began) }
        (checkpointBegan, lastCheckpoint) = (nil, now)
    }

    // MARK: Bytes

    /// Records received bytes of a transfer.
    /// - Returns: The offset and number of wanted bytes, and whether more are wanted; `nil` for an inactive transfer.
    package mutating func accept(_ id: UInt64, _ count: UInt64, now: MonotonicTime) -> (
        offset: UInt64, count: UInt64, wantsMore: Bool
    )? {
        receivedByteCount += count
        guard !isOver, let source = transfers[id]?.source, let accepted = plan?.accept(id, count, now: now) else {
            return nil
        }
        ramp.add(accepted.count)
        if accepted.count > 0 {
            reached = max(reached, accepted.offset + accepted.count)
            sources[source].byteCount += accepted.count
            if reached > furthest { (hasProgressed, sources[source].failures) = (true, 0) }
        }
        return accepted
    }

    /// Whether a file of this length exceeds the limit.
    package func exceedsLimit(_ end: UInt64) -> Bool {
        end > min(UInt64(clamping: options.byteLimit.bytes), expectedByteCount ?? .max)
    }

    /// Records written bytes of a transfer.
    package mutating func wrote(_ id: UInt64, _ range: Range<UInt64>) -> [Effect] {
        guard !isOver, transfers[id] != nil else { return [] }
        // Set here, and not when bytes are received: a record claims only written bytes.
        hasUnsavedProgress = true
        return plan?.wrote(id, range).map { [.cancel($0)] } ?? []
    }

    // MARK: The end

    /// Ends the download with all bytes.
    mutating func complete() -> [Effect] { stop() + [.complete] }

    /// Ends the download with an error.
    mutating func fail(_ error: HTTPError) -> [Effect] {
        var failure = error
        failure.resumableByteCount = isResumable ? plan?.writtenCount : nil
        return stop() + [.fail(failure)]
    }

    mutating func cancelAll(but id: UInt64? = nil) -> [Effect] {
        let others = transfers.keys.filter { $0 != id }.sorted()
        for other in others {
            transfers[other] = nil
            receiving.remove(other)
        }
        return others.map(Effect.cancel)
    }

    package mutating func stop() -> [Effect] {
        isOver = true
        return cancelAll()
    }

    /// Handles a wrong checksum: restarts once if bytes of several requests may belong to several representations.
    package mutating func mismatched(_ error: HTTPError, now: MonotonicTime) -> [Effect] {
        if hasMirrors { return mismatchedWithMirrors(error, now) }
        guard isUnproven, !isLastGeneration else {
            isOver = true
            return [.fail(error)]
        }
        isOver = false
        supportsRanges = false
        return startGeneration(.changed, now) + fill(now)
    }
}
