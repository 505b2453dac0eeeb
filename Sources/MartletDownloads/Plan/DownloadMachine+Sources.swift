import MartletCore

/// The use of several URLs of one file. Bytes of a mirror are mixed with those of other servers only if ``MirrorRule``
/// allows it.
extension DownloadMachine {
    var hasMirrors: Bool { sources.count > 1 }

    /// Whether bytes of mirrors may be added to the received ones: something would show that they differ.
    private var mixesSources: Bool {
        guard hasMirrors, !isExclusive, !isLastGeneration, plan?.total != nil, let known, known.coding == nil else {
            return false
        }
        return known.entityTag.map { !$0.isWeak } ?? false || !digests.isEmpty || options.checksum != nil
    }

    /// Whether a mirror may send parts.
    var usesMirrors: Bool { mixesSources && sources.indices.contains { $0 != lead && sendsParts($0) } }

    /// Whether a URL may be asked for missing bytes, now or after a delay.
    private func sendsParts(_ index: Int) -> Bool {
        guard sources[index].use == .parts else { return false }
        if index == lead { return mayRequestRanges || options.resumption == .unverified && supportsRanges }
        return mixesSources && sources[index].supportsRanges
    }

    /// Returns the URL for the next part; `nil` if none is available now. Each URL gets connections in proportion to
    /// the rate of one connection, and at first one; the order of the URLs decides between equal ones.
    func sourceOfNextPart(_ now: MonotonicTime) -> Int? {
        guard hasMirrors else { return 0 }
        var counts = Array(repeating: 0, count: sources.count)
        for request in transfers.values { counts[request.source] += 1 }
        let rates = sources.indices.map { rate($0, now) }
        let fastest = rates.compactMap(\.self).max() ?? 1
        var best: (index: Int, cost: Double)?
        for index in sources.indices where sources[index].isAvailable(now) && sendsParts(index) {
            guard transfers.isEmpty || sources[index].hasRoom(beside: counts[index], now),
                index != lead || isSegmented || counts[index] == 0
            else { continue }
            let cost = Double(counts[index] + 1) * fastest / max(rates[index] ?? fastest, 1)
            if cost < best?.cost ?? .infinity { best = (index, cost) }
        }
        return best?.index
    }

    /// Returns the rate of one connection: that of the fastest active one, else that of the last; `nil` if unknown.
    private func rate(_ index: Int, _ now: MonotonicTime) -> Double? {
        let active = transfers.values.lazy.filter { $0.source == index }.compactMap { plan?.claims[$0.id]?.rate }
            .filter { $0.age(at: now) >= 1 }.map { $0.value(at: now) }
        return active.max() ?? sources[index].rate
    }

    /// Records the rate of a transfer that ends.
    mutating func measure(_ request: DownloadRequest, _ claim: SegmentPlan.Claim?, _ now: MonotonicTime) {
        guard let rate = claim?.rate else { return }
        let value = rate.value(at: now)
        // A transfer that has received nothing for two seconds is measured, too.
        if value > 0 || rate.age(at: now) > 2 { sources[request.source].rate = max(value, 1) }
    }

    /// Reports the first use of a URL.
    mutating func reportUse(_ index: Int) -> [Effect] {
        guard hasMirrors, !sources[index].isReported else { return [] }
        sources[index].isReported = true
        return [.emit(.urlUsed(sources[index].url.withoutUserInfo))]
    }

    // MARK: Responses

    /// Handles the response of a mirror to a request for missing bytes.
    mutating func mirrorResponseReceived(
        _ request: DownloadRequest, _ responseHead: DownloadResponseHead, now: MonotonicTime
    ) -> Response {
        let index = request.source
        guard let known, let plan else { return (.leave, .cancelled, []) }
        let source = sources[index]
        let decision = DownloadResponseRule.decision(
            request.asked, responseHead, known: source.representation, total: plan.total)
        switch decision {
        case .part(let skipped, let range, _):
            if source.representation?.hasCondition != true {
                switch MirrorRule.decision(responseHead, known: known, digests: digests, checksum: options.checksum) {
                case .same: break
                case .unproven: isUnproven = true
                case .other: return rejected("nothing proves that the mirror has the same file", request, responseHead)
                }
                sources[index].representation = responseHead.representation
            }
            return take(request, responseHead, skipped, range, now)
        case .rangeIgnored:
            sources[index].dropsCondition = true
            return (.leave, .cancelled, [])
        case .failed:
            let action = DownloadRetryRule.action(
                status: responseHead.status, retryAfter: responseHead.retryAfter, isRedirected: isRedirected(request))
            return (.leave, .rejected(statusError(request, responseHead), action), [])
        case .rejected(let why): return rejected(why, request, responseHead)
        case .whole, .changedWhole, .unproven, .changedPart, .unsatisfied:
            return rejected("the mirror has another file, or does not send parts of it", request, responseHead)
        }
    }

    /// Stops the use of a mirror for parts. Without a checksum, a file of another length than the first one is wrong.
    private mutating func rejected(
        _ why: String, _ request: DownloadRequest, _ responseHead: DownloadResponseHead
    ) -> Response {
        var length = responseHead.status == 206 ? nil : responseHead.byteCount
        if case .range(.satisfied(_, let total)) = responseHead.part { length = total }
        let isWrong = length != nil && length != plan?.total && options.checksum == nil
        sources[request.source].use = isWrong ? .nothing : .wholeFile
        sources[request.source].representation = nil
        return (.leave, .rejected(error(.rangeRejected, request, responseHead, why), .fail), [])
    }

    /// Returns the error of a file with another length than the expected one; `nil` for the right one.
    func wrongLength(_ total: UInt64, _ url: HTTPURL) -> HTTPError? {
        guard let expectedByteCount, total != expectedByteCount else { return nil }
        return HTTPError(
            .representationChanged, phase: .processingResponse,
            message: "the file is \(total) bytes long instead of \(expectedByteCount)", wasSent: true, method: .get,
            url: url)
    }

    // MARK: Failures

    /// Limits the connections to the server of a transfer to the others that are active, or to one, for a while.
    mutating func limitConnections(of request: DownloadRequest, _ now: MonotonicTime) {
        let count = transfers.values.count { $0.source == request.source }
        sources[request.source].limit = (max(1, count), now.advanced(by: ConnectionRamp.rejectionRest))
    }

    /// Handles a failure that concerns one of several URLs: another one continues.
    mutating func sourceFailed(
        _ request: DownloadRequest, _ error: HTTPError, _ action: DownloadRetryRule.Action, _ now: MonotonicTime,
        _ random: @autoclosure () -> Double
    ) -> [Effect] {
        let index = request.source
        if action == .requestOriginal { sources[index].foundURL = nil }
        // A server that limits the number of connections rejects additional ones in many ways.
        let isBeyond = request.isAdditional || receiving.contains { transfers[$0]?.source == index }
        if sources[index].use == .parts, isBeyond {
            limitConnections(of: request, now)
            return proceed(afterFailure: true, now)
        }
        sources[index].failures += 1
        sources[index].error = error
        if sources[index].use == .parts {
            if action == .fail || sources[index].failures > options.retry.maximumRetries {
                sources[index].use = .nothing
            } else if case .retry(let asked) = action {
                let delay = DownloadRetryRule.delay(
                    sources[index].failures, asked: asked, options.retry, random: random())
                sources[index].restsUntil = now.advanced(by: delay)
            }
        }
        return [.emit(.urlFailed(sources[index].url.withoutUserInfo, error))] + proceed(afterFailure: true, now)
    }

    /// Requests the missing bytes from any URL. If none can send them, fetches the whole file from another one, or ends
    /// the download.
    mutating func proceedWithMirrors(afterFailure isBroken: Bool, _ now: MonotonicTime) -> [Effect] {
        guard transfers.isEmpty, retryAt == nil else { return fill(now) }
        if plan != nil, sources.indices.contains(where: sendsParts) {
            let effects = fill(now)
            return effects.isEmpty ? wait(for: sources.indices.filter(sendsParts), now) : effects
        }
        let usable = sources.indices.filter { sources[$0].use != .nothing }
        guard !usable.isEmpty else { return fail(failureOfAll) }
        guard let next = ([lead] + usable).first(where: { sources[$0].isAvailable(now) }) else {
            return wait(for: usable, now)
        }
        guard let plan else {
            follow(next)
            return fill(now)
        }
        if next == lead, plan.writtenCount > 0 {
            let reason: DownloadEvent.RestartReason = supportsRanges ? .notResumable : .rangesRejected
            if !isBroken, let error = versionLimitError(reason, asked: nil, nil) {
                (sources[lead].use, sources[lead].error) = (.nothing, error)
                return proceedWithMirrors(afterFailure: isBroken, now)
            }
            return startGeneration(reason, afterFailure: isBroken, now) + fill(now)
        }
        // Without a checksum, the first file that was seen is the right one.
        if next != lead, options.checksum == nil { expectedByteCount = expectedByteCount ?? plan.total }
        let effects = plan.writtenCount > 0 ? startGeneration(.otherURL, afterFailure: true, now) : []
        forget()
        follow(next)
        return effects + fill(now)
    }

    /// Makes a URL the one whose responses describe the file.
    private mutating func follow(_ index: Int) {
        guard index != lead else { return }
        if sources[index].use == .wholeFile { (sources[index].use, sources[index].failures) = (.parts, 0) }
        (lead, countedGenerations, plainRequest, isWhole) = (index, 1, .notMade, false)
    }

    private mutating func wait(for indices: [Int], _ now: MonotonicTime) -> [Effect] {
        let resting = indices.compactMap { index in sources[index].restsUntil.map { (index, $0) } }
        guard let (index, end) = resting.min(by: { $0.1 < $1.1 }), end > now, let error = sources[index].error else {
            return []
        }
        retryAt = end
        return [.emit(.retrying(error, after: end.since(now), failures: sources[index].failures))]
    }

    /// The error of the first URL, with the messages of all.
    private var failureOfAll: HTTPError {
        let shown = sources.prefix(16).map { "\($0.url.redacted): \($0.error?.message ?? "not requested")" }
        let rest = sources.count > shown.count ? "; and \(sources.count - shown.count) more" : ""
        var error =
            sources.lazy.compactMap(\.error).first
            ?? HTTPError(.connectFailed, phase: .preparing, message: "", method: .get, url: original)
        error.message = "all \(sources.count) URLs of the file failed: \(shown.joined(separator: "; "))\(rest)"
        return error
    }

    /// Handles a wrong checksum. If the bytes came from several servers, the whole file is fetched from one of them;
    /// otherwise that one has another file.
    mutating func mismatchedWithMirrors(_ error: HTTPError, _ now: MonotonicTime) -> [Effect] {
        isOver = false
        var effects: [Effect] = []
        if !isExclusive, isUnproven || sources.count(where: { $0.representation != nil }) > 1 {
            isExclusive = true
        } else {
            (sources[lead].use, sources[lead].error) = (.nothing, error)
            effects.append(.emit(.urlFailed(sources[lead].url.withoutUserInfo, error)))
        }
        guard let next = ([lead] + sources.indices).first(where: { sources[$0].use != .nothing }) else {
            isOver = true
            return [.fail(sources.count(where: { $0.error != nil }) > 1 ? failureOfAll : error)]
        }
        // The delay after an earlier failure is over soon, and the whole file takes longer.
        for index in sources.indices { sources[index].restsUntil = nil }
        effects += startGeneration(.otherURL, now)
        follow(next)
        return effects + fill(now)
    }

    // MARK: Records

    /// The representations of the received bytes by URL, that of ``known`` first; empty if only the first URL has any.
    package var recordedSources: [ResumeRecord.Source] {
        guard lead != 0 || sources.dropFirst().contains(where: { $0.representation != nil }) else { return [] }
        let order = [lead] + sources.indices.filter { $0 != lead }
        return order.compactMap { index in
            let representation = index == lead ? known : sources[index].representation
            return representation.map { ResumeRecord.Source(url: sources[index].url.absoluteForm, representation: $0) }
        }
    }

    /// Assigns the representations of a record to the URLs that still belong to the download. The first one may have
    /// another signature now.
    mutating func restore(_ record: ResumeRecord) {
        guard let first = record.sources.first else { return sources[0].representation = known }
        for index in sources.indices {
            let url = index == 0 ? record.url : sources[index].url.absoluteForm
            sources[index].representation = record.sources.first { $0.url == url }?.representation
            if url == first.url { lead = index }
        }
        guard sources[lead].representation == nil else { return }
        if let other = sources.firstIndex(where: { $0.representation != nil }) {
            (lead, known) = (other, sources[other].representation)
        } else {
            // The servers of the bytes are gone: only an equal strong entity tag proves that another has the same file.
            known?.lastModified = nil
            known?.isLastModifiedStrong = false
        }
    }

    /// The number of bytes that were received from each URL.
    var receivedByteCounts: [HTTPURL: UInt64] {
        sources.reduce(into: [:]) { if $1.byteCount > 0 { $0[$1.url.withoutUserInfo, default: 0] += $1.byteCount } }
    }
}
