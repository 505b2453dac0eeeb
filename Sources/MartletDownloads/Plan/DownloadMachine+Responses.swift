package import MartletCore

extension DownloadMachine {
    /// The use of a response, the outcome of its transfer if that ends, and the effects.
    package typealias Response = (ResponseAction, TransferOutcome?, [Effect])

    /// Handles the response of a transfer.
    package mutating func responseReceived(_ id: UInt64, _ responseHead: DownloadResponseHead, now: MonotonicTime)
        -> Response
    {
        guard !isOver, let request = transfers[id] else { return (.leave, .cancelled, []) }
        if request.source != lead { return mirrorResponseReceived(request, responseHead, now: now) }
        let decision = DownloadResponseRule.decision(
            request.asked, responseHead, known: known, former: hasExpectedLength(responseHead) ? nil : former,
            total: plan?.total)
        if isAdditional(request), !decision.isUsableByAdditional { return (.leave, .crowded, []) }
        switch decision {
        case .part(let skipped, let range, let total): return part(request, responseHead, skipped, range, total, now)
        case .whole: return whole(request, responseHead, .rangesRejected, now)
        case .changedWhole: return whole(request, responseHead, .changed, now)
        case .unproven:
            if isProvenChange(responseHead) { return whole(request, responseHead, .changed, now) }
            let why = "the response has no validator that shows whether the file is the same"
            let error = error(.representationChanged, request, responseHead, why)
            let action: DownloadRetryRule.Action =
                isRedirected(request) ? .requestOriginal : .retry(after: responseHead.retryAfter)
            return (.leave, .rejected(error, action), [])
        case .changedPart: return restart(.changed, request, responseHead, now)
        case .rangeIgnored:
            // Without `If-Range`, the entity tag of each part proves its representation.
            sources[lead].dropsCondition = true
            return (.leave, .cancelled, [])
        case .unsatisfied(let total):
            guard let plan else {
                // The first byte was not satisfiable: the file is empty, or the server sends no parts of it.
                supportsRanges = false
                return (.leave, .cancelled, [])
            }
            if plan.total == nil, let total, plan.prefixCount == total, !hasOtherEntityTag(responseHead) {
                if let error = wrongLength(total, responseHead.url) {
                    return (.leave, .rejected(error, .fail), [])
                }
                self.plan?.end(at: total)
                return (.leave, .finished, [])
            }
            return restart(.changed, request, responseHead, now)
        case .rejected(let why):
            guard request.range != nil, supportsRanges else {
                return (.leave, .rejected(error(.rangeRejected, request, responseHead, why), .fail), [])
            }
            supportsRanges = false
            guard plan != nil else { return (.leave, .cancelled, []) }
            let result = restart(.rangesRejected, request, responseHead, now)
            // A server that sends no validators with a part may send none with the whole file: do not require them.
            let its = responseHead.representation
            if its.entityTag == nil, its.lastModified == nil { former = nil }
            return result
        case .failed:
            if retriesWithoutRange(request, responseHead) { return (.leave, .cancelled, []) }
            let action = DownloadRetryRule.action(
                status: responseHead.status, retryAfter: responseHead.retryAfter, isRedirected: isRedirected(request))
            let error = (request.range == nil ? rangeError : nil) ?? statusError(request, responseHead)
            return (.leave, .rejected(error, action), [])
        }
    }

    /// Whether a response of one of several URLs has the length of the file. It is then not the page of a captive
    /// portal, even without a validator.
    private func hasExpectedLength(_ responseHead: DownloadResponseHead) -> Bool {
        hasMirrors && expectedByteCount != nil && responseHead.byteCount == expectedByteCount
    }

    /// Whether the file is requested again immediately. A status may reject the `Range` of a probe: the file is then
    /// requested once without it; after a transient status, with a delay. If that fails too, the range was not the
    /// reason.
    private mutating func retriesWithoutRange(_ request: DownloadRequest, _ responseHead: DownloadResponseHead)
        -> Bool
    {
        guard plan == nil else { return false }
        switch plainRequest {
        case .notMade where request.range != nil && DownloadRetryRule.rejectingRange.contains(responseHead.status):
            (supportsRanges, plainRequest) = (false, .made)
            return !DownloadRetryRule.passing.contains(responseHead.status) || options.retry.maximumRetries <= 0
        case .made where request.range == nil:
            (supportsRanges, plainRequest) = (true, .unneeded)
            return false
        case .notMade, .made, .succeeded, .unneeded: return false
        }
    }

    private mutating func part(
        _ request: DownloadRequest, _ responseHead: DownloadResponseHead, _ skipped: UInt64, _ range: Range<UInt64>,
        _ total: UInt64, _ now: MonotonicTime
    ) -> Response {
        let id = request.id
        plainRequest = .unneeded
        guard plan != nil else {
            if let error = wrongLength(total, responseHead.url) { return (.leave, .rejected(error, .fail), []) }
            if let rejection = tooLarge(total) { return (.leave, nil, fail(rejection)) }
            adopt(responseHead, total: total)
            guard range.upperBound == total || mayRequestRanges else {
                // Nothing could prove that the rest belongs to the same representation: request the file in one piece.
                forget()
                if options.resumption == .unverified { isWhole = true } else { supportsRanges = false }
                return (.leave, .cancelled, [])
            }
            plan?.claim(id, range, now: now)
            plan?.responseReceived(after: now.since(request.time))
            receiving.insert(id)
            return (.take(passingOver: skipped, comparing: 0, restartsTransfer: true), nil, reportUse(lead) + fill(now))
        }
        if plan?.total == nil {
            if let error = wrongLength(total, responseHead.url) { return (.leave, .rejected(error, .fail), []) }
            plan?.end(at: total)
        }
        if known?.hasCondition != true { isUnproven = true }
        return take(request, responseHead, skipped, range, now)
    }

    /// Uses a response that has missing bytes of the file.
    mutating func take(
        _ request: DownloadRequest, _ responseHead: DownloadResponseHead, _ skipped: UInt64, _ range: Range<UInt64>,
        _ now: MonotonicTime
    ) -> Response {
        let id = request.id
        // The range may start with bytes to compare, which are written and not claimed: only its end matters here.
        plan?.shorten(id, to: range.upperBound)
        plan?.responseReceived(after: now.since(request.time))
        found(responseHead.url, by: request.source)
        receiving.insert(id)
        // If all bytes are written, the response contains only bytes to compare.
        guard range.byteCount > request.overlap || (range.byteCount == request.overlap && plan?.isComplete == true)
        else {
            let why = "the response has too few bytes to be compared"
            return (.leave, .rejected(error(.rangeRejected, request, responseHead, why), .fail), [])
        }
        let effects = reportUse(request.source) + fill(now)
        return (.take(passingOver: skipped, comparing: request.overlap, restartsTransfer: false), nil, effects)
    }

    /// Whether other transfers are active, or were when the request was made. They may fetch the file even if this one
    /// cannot.
    private func isAdditional(_ request: DownloadRequest) -> Bool {
        request.isAdditional || plan != nil && transfers.keys.contains { $0 != request.id }
    }

    /// Whether a request went to the URL of a redirect, which may have expired: the original URL is requested next.
    func isRedirected(_ request: DownloadRequest) -> Bool {
        request.url.absoluteForm != sources[request.source].url.absoluteForm
    }

    /// Whether a digest proves that a response has another representation: it is the expected checksum, or has changed.
    private func isProvenChange(_ responseHead: DownloadResponseHead) -> Bool {
        responseHead.digests.contains { digest in
            digest == options.checksum || digests.contains { $0.algorithm == digest.algorithm && $0 != digest }
        }
    }

    /// Whether a response has another entity tag than the known representation.
    private func hasOtherEntityTag(_ responseHead: DownloadResponseHead) -> Bool {
        guard let mine = known?.entityTag, let its = responseHead.representation.entityTag else { return false }
        return !mine.matchesWeakly(its)
    }

    /// Uses a response that is the whole file, restarting if there are bytes already.
    private mutating func whole(
        _ request: DownloadRequest, _ responseHead: DownloadResponseHead, _ reason: DownloadEvent.RestartReason,
        _ now: MonotonicTime
    ) -> Response {
        if let total = responseHead.byteCount, let error = wrongLength(total, responseHead.url) {
            return (.leave, .rejected(error, .fail), [])
        }
        guard plan == nil else {
            let (action, end, effects) = restart(reason, request, responseHead, now)
            guard !isOver else { return (action, end, effects) }
            if reason == .rangesRejected { supportsRanges = false }
            let (ownAction, ownEnd, more) = takeWhole(request.id, responseHead, now)
            return (ownAction, ownEnd, effects + more)
        }
        if request.range != nil { supportsRanges = false }
        if plainRequest == .made, !hasMirrors {
            plainRequest = .succeeded
            // The status may have had another reason than the range. So a broken transfer is resumed, and if that is
            // rejected as well, the file is requested again.
            supportsRanges = responseHead.representation.hasCondition
        }
        return takeWhole(request.id, responseHead, now)
    }

    private mutating func takeWhole(_ id: UInt64, _ responseHead: DownloadResponseHead, _ now: MonotonicTime)
        -> Response
    {
        if let total = responseHead.byteCount, let rejection = tooLarge(total) {
            return (.leave, nil, fail(rejection))
        }
        adopt(responseHead, total: responseHead.byteCount)
        plan?.claim(id, 0..<(responseHead.byteCount ?? .max), now: now)
        receiving.insert(id)
        return (.take(passingOver: 0, comparing: 0, restartsTransfer: true), nil, reportUse(lead))
    }

    private func tooLarge(_ total: UInt64) -> HTTPError? {
        guard exceedsLimit(total) else { return nil }
        return HTTPError(
            .bodyTooLarge, phase: .receivingBody,
            message: "the file is \(total) bytes long, and the limit is \(options.byteLimit.bytes)", wasSent: true,
            method: .get, url: original)
    }

    /// Restarts after a response whose body is not used. Fails after too many restarts.
    private mutating func restart(
        _ reason: DownloadEvent.RestartReason, _ request: DownloadRequest, _ responseHead: DownloadResponseHead,
        _ now: MonotonicTime
    ) -> Response {
        if let error = versionLimitError(reason, asked: request, responseHead) {
            return hasMirrors ? (.leave, .rejected(error, .fail), []) : (.leave, nil, fail(error))
        }
        return (.leave, .cancelled, cancelAll(but: request.id) + startGeneration(reason, now))
    }

    func versionLimitError(
        _ reason: DownloadEvent.RestartReason, asked: DownloadRequest?, _ responseHead: DownloadResponseHead?
    ) -> HTTPError? {
        guard isLastGeneration else { return nil }
        let (code, what): (HTTPError.Code, String) =
            switch reason {
            case .changed: (.representationChanged, "the file changed on the server repeatedly")
            case .rangesRejected: (.rangeRejected, "the server does not return the requested ranges")
            case .notResumable, .overlapDiffers, .otherURL:
                (.notResumable, "the transfer failed repeatedly, and nothing shows that the file is still the same")
            }
        let details = [asked.map { "requested \($0.asked.words)" }, responseHead.map { "received \($0.words)" }]
            .compactMap(\.self).joined(separator: ", ")
        return HTTPError(
            code, phase: .processingResponse, message: details.isEmpty ? what : "\(what) (\(details))", wasSent: true,
            method: .get, url: original, attempts: Int(generation))
    }

    // MARK: Ends

    /// Handles the end of a transfer.
    /// - Parameter random: Between 0 and 1, for a delay; evaluated only if there is one.
    package mutating func ended(
        _ id: UInt64, _ end: TransferOutcome, now: MonotonicTime, random: @autoclosure () -> Double
    ) -> [Effect] {
        guard let request = transfers.removeValue(forKey: id) else { return [] }
        receiving.remove(id)
        let claim = plan?.claims[id]
        measure(request, claim, now)
        plan?.release(id, now: now)
        guard !isOver else { return [] }
        // All bytes may have arrived before the connection broke.
        if case .differs = end {} else if plan?.isComplete == true { return complete() }
        switch end {
        case .finished:
            if let claim, plan?.total == nil {
                if let error = wrongLength(claim.writtenEnd, request.url) {
                    // Another URL needs an empty file without a record of these bytes: a new generation.
                    let effects = hasMirrors ? startGeneration(.otherURL, afterFailure: true, now) : []
                    forget()
                    return effects + failed(request, error, .fail, now, random())
                }
                plan?.end(at: claim.writtenEnd)
            }
            if plan?.isComplete == true { return complete() }
            if let claim, !claim.range.isEmpty, claim.writtenEnd == claim.range.lowerBound {
                return failed(request, emptyResponseError(request), .retry(after: nil), now, random())
            }
            return proceed(now)
        case .cancelled: return proceed(now)
        case .crowded:
            if hasMirrors {
                limitConnections(of: request, now)
            } else {
                ramp.rejected(active: transfers.count, now: now)
            }
            return proceed(now)
        case .differs:
            if let error = versionLimitError(.overlapDiffers, asked: request, nil) {
                return hasMirrors ? failed(request, error, .fail, now, random()) : fail(error)
            }
            return cancelAll() + startGeneration(.overlapDiffers, now) + fill(now)
        case .failed(let error):
            let action = DownloadRetryRule.action(error, isRedirected: isRedirected(request))
            return failed(request, error, action, now, random())
        case .rejected(let error, let action): return failed(request, error, action, now, random())
        }
    }

    /// Requests the missing bytes. Restarts if a broken transfer cannot be resumed.
    /// - Parameter isBroken: Whether the reason is a failure, after which the options allow a retry.
    mutating func proceed(afterFailure isBroken: Bool = false, _ now: MonotonicTime) -> [Effect] {
        if hasMirrors { return proceedWithMirrors(afterFailure: isBroken, now) }
        guard let plan, transfers.isEmpty, !plan.isComplete, !mayRequestRanges,
            !(options.resumption == .unverified && supportsRanges)
        else { return fill(now) }
        let reason: DownloadEvent.RestartReason = supportsRanges ? .notResumable : .rangesRejected
        guard plan.writtenCount > 0 else {
            forget()
            return fill(now)
        }
        if !isBroken, let error = versionLimitError(reason, asked: nil, nil) { return fail(error) }
        return startGeneration(reason, afterFailure: isBroken, now) + fill(now)
    }

    private mutating func failed(
        _ request: DownloadRequest, _ error: HTTPError, _ action: DownloadRetryRule.Action, _ now: MonotonicTime,
        _ random: @autoclosure () -> Double
    ) -> [Effect] {
        if hasMirrors, !DownloadRetryRule.concernsAll(error) {
            return sourceFailed(request, error, action, now, random())
        }
        // A server that limits the number of connections rejects additional ones in many ways, and the system may have
        // no descriptor left. Only a failure that concerns all transfers, as of the local file, ends the others.
        let isBeyond = action == .fail && !DownloadRetryRule.concernsAll(error) && isAdditional(request)
        if action == .fail, !isBeyond { return failOrRequestWhole(request, error, now) }
        if isBeyond || !receiving.isEmpty {
            // The others continue, including those that wait for their responses. If none is left, the bytes are
            // requested again, by one transfer alone. For a while no connection is added.
            ramp.rejected(active: transfers.count, now: now)
            if action == .requestOriginal { foundURL = nil }
            return proceed(afterFailure: true, now)
        }
        failures = hasProgressed ? 1 : failures + 1
        hasProgressed = false
        guard failures <= options.retry.maximumRetries else { return failOrRequestWhole(request, error, now) }
        var delay = Duration.zero
        if case .retry(let asked) = action {
            delay = DownloadRetryRule.delay(failures, asked: asked, options.retry, random: random())
        } else {
            foundURL = nil
        }
        // No transfer receives bytes: all are cancelled, and repeated after the delay.
        let effects = cancelAll()
        for effect in effects { if case .cancel(let id) = effect { plan?.release(id, now: now) } }
        ramp.restart(now: now)
        if delay > .zero { retryAt = now.advanced(by: delay) }
        return effects + [.emit(.retrying(error, after: delay, failures: failures))] + proceed(afterFailure: true, now)
    }

    /// Fails the download. If the status may have rejected the range, and this run has received no part, the whole file
    /// is requested once before. If that fails as well, the stored bytes stay, and the error is that of the range.
    private mutating func failOrRequestWhole(
        _ request: DownloadRequest, _ error: HTTPError, _ now: MonotonicTime
    ) -> [Effect] {
        guard plainRequest == .notMade || plainRequest == .succeeded, request.range != nil, known?.hasCondition == true,
            error.code == .unacceptableStatus, let status = error.status,
            DownloadRetryRule.rejectingRange.contains(status)
        else { return fail(error) }
        (supportsRanges, plainRequest, rangeError) = (false, .made, error)
        return cancelAll() + proceed(afterFailure: true, now)
    }

    // MARK: Errors

    private func emptyResponseError(_ request: DownloadRequest) -> HTTPError {
        HTTPError(
            .truncated, phase: .receivingBody, message: "the response has no bytes (requested \(request.asked.words))",
            wasSent: true, method: .get, url: request.url)
    }

    func error(
        _ code: HTTPError.Code, _ request: DownloadRequest, _ responseHead: DownloadResponseHead, _ why: String
    ) -> HTTPError {
        HTTPError(
            code, phase: .processingResponse,
            message: "\(why) (requested \(request.asked.words), received \(responseHead.words))", wasSent: true,
            method: .get, url: responseHead.url, status: responseHead.status)
    }

    func statusError(_ request: DownloadRequest, _ responseHead: DownloadResponseHead) -> HTTPError {
        HTTPError(
            .unacceptableStatus, phase: .processingResponse,
            message: (request.range?.lowerBound ?? 0) == 0
                ? responseHead.words : "\(responseHead.words) (requested \(request.asked.words))", wasSent: true,
            method: .get, url: responseHead.url, status: responseHead.status)
    }
}
