import MartletAuthentication
import MartletCore
import MartletConditions

// Carries out the machine's decisions: starts and ends attempts, writes records, and emits events.
extension OfflineQueue {
    /// Restores the queue from the contents of its directory.
    func restore(_ contents: OfflineStore.Contents) async {
        for finding in contents.findings { log.add(finding) }
        let (now, wall) = (now(), wallTime())
        var effects: [ReplayMachine.Effects] = []
        requestCount = contents.summaries.count
        for var summary in contents.summaries {
            let id = summary.ticket.id
            storedByteCount += summary.storedByteCount
            if contents.interrupted.contains(id) {
                summary.isResting = true
                log.add(.uncertain(summary.ticket, await interrupt(id)))
            }
            held[id] = Held(summary: summary)
            effects.append(
                machine.add(
                    id, lane: summary.ticket.lane, expires: summary.deadline(now: now, boot: boot, wall: wall),
                    isResting: summary.isResting, now: now))
        }
        for effects in effects { apply(effects) }
    }

    /// Records that the effect of a request is unknown, because a process ended while it was being sent.
    private func interrupt(_ id: OfflineID) async -> OfflineDeadLetter {
        let letter = OfflineDeadLetter(
            .interrupted, message: "the process ended while the request was being sent, and it must not be sent twice")
        // After a failure the record still states that the request is being sent, and the next process handles it.
        _ = try? await store.change(id) { request in
            request.stage = .uncertain(letter)
            return true
        }
        return letter
    }

    // MARK: Effects

    func apply(_ effects: ReplayMachine.Effects) {
        for id in effects.cancel { held[id]?.attempt?.cancel() }
        for id in effects.expire {
            held[id]?.settlement = .expired
            settle(id)
        }
        for id in effects.settle {
            if held[id]?.settlement == nil { held[id]?.settlement = .dropped }
            settle(id)
        }
        for id in effects.begin { begin(id) }
        isDrained.update { machine.isDrained }
        if effects.isDrained { log.add(.drained) }
        setTimer()
    }

    /// The maximum sleep between two checks of the clock: during a suspend the clock advances, but a sleep may not.
    private static let longestSleep = Duration.seconds(60)

    private func setTimer() {
        guard !isClosing, let wake = machine.nextWake() else { return }
        if let timer, timer.time <= wake { return }
        timer?.task.cancel()
        let delay = min(wake.since(now()), OfflineQueue.longestSleep)
        let task = Task { [weak self] in
            try? await Task.sleep(for: delay)
            guard !Task.isCancelled else { return }
            await self?.timerFired()
        }
        timer = (wake, task)
    }

    private func timerFired() {
        timer = nil
        guard !isClosing else { return }
        apply(machine.advance(to: now()))
    }

    /// Retries requests whenever there is a usable network path that differs from the previous one.
    func follow(_ monitor: NetworkMonitor) {
        // The task does not retain the queue, whose `deinit` cancels the task.
        follower = Task { [weak self] in
            var last: NetworkPath?
            for await path in monitor {
                if last != nil, path.status == .satisfied { await self?.networkBecameAvailable() }
                last = path
            }
        }
    }

    // MARK: Attempts

    private func begin(_ id: OfflineID) {
        // The task retains the store and its lock, but not the queue: releasing the queue ends the attempts.
        runs.add { [weak self, store] in
            let attempt = await self?.start(id)
            if let attempt {
                let decision = await withTaskCancellationHandler {
                    await attempt.value
                } onCancel: {
                    attempt.cancel()
                }
                await self?.finish(id, decision)
            }
            withExtendedLifetime(store) {}
        }
    }

    /// Starts an attempt.
    /// - Returns: The task that sends the request; `nil` if it is not sent now.
    private func start(_ id: OfflineID) async -> Task<ReplayDecision?, Never>? {
        guard let prepared = await prepare(id) else { return nil }
        guard !isClosing, !machine.isDropped(id) else {
            await noteUnsent(id)
            end(id, nil)
            return nil
        }
        // Unstructured, so that each attempt can be cancelled separately. `begin(_:)` awaits and cancels it.
        let task = Task { await prepared.run() }
        held[id]?.attempt = task
        return task
    }

    private func finish(_ id: OfflineID, _ decision: ReplayDecision?) async {
        held[id]?.attempt = nil
        if case .later = decision { await noteUnsent(id) }
        end(id, decision)
    }

    /// Records that the server has certainly not accepted a request that must not be sent twice. Without this record
    /// the next process would treat the request as uncertain.
    private func noteUnsent(_ id: OfflineID) async {
        guard let entry = held[id], !entry.summary.isRepeatable, !machine.isDropped(id) else { return }
        do throws(HTTPError) {
            try await store.change(id) { request in
                guard request.stage == .sending else { return false }
                request.stage = .waiting
                return true
            }
        } catch {
            // The next process then treats the request as uncertain, and does not send it.
            log.add(.fileFailed(entry.summary.ticket, error))
        }
    }

    /// Reads a request, verifies its body, and records that it is about to be sent.
    /// - Returns: The attempt; `nil` if it is not sent now.
    private func prepare(_ id: OfflineID) async -> OfflineAttempt? {
        var request: QueuedRequest
        do throws(OfflineRecordError) { request = try await store.load(id) } catch {
            if error.isDamage {
                log.add(await store.setAside(id, error))
                close(id, .setAside)
            } else if error.isMissing, held[id] != nil {
                // The request's file was removed, so there is nothing to send.
                log.add(.recordSkipped(path: FilePath(store.recordPath(id)), reason: error.description))
                close(id, .setAside)
            } else {
                end(id, .later(.storage, atLeast: nil, message: error.description))
            }
            return nil
        }
        let body: HTTPBody
        do throws(HTTPError) {
            guard var found = try await openBody(of: request) else {
                end(id, .dead(OfflineQueue.changed(request.body), nil))
                return nil
            }
            found.compression = request.compression
            body = found
        } catch {
            end(id, .later(.storage, atLeast: nil, message: error.description))
            return nil
        }
        request.attempts = request.attempts == .max ? .max : request.attempts + 1
        request.stage = .sending
        // From now on, changes of the wall clock do not move the expiry.
        if let expiry = machine.expiry(of: id), expiry != .distantFuture {
            request.bootDeadline = BootDeadline(expiry, boot: boot)
        }
        do throws(HTTPError) { try await store.save(request) } catch {
            if let ticket = held[id]?.summary.ticket { log.add(.fileFailed(ticket, error)) }
            // On a full disk only deliveries free space, so a request that may be sent twice is sent without a record.
            // After other errors it is not sent: perhaps its file could not be removed after the delivery.
            guard error.code == .diskFull, held[id]?.summary.isRepeatable == true else {
                end(id, .later(.storage, atLeast: nil, message: error.description))
                return nil
            }
        }
        guard let entry = held[id] else { return nil }
        held[id]?.summary.attempts = Int(request.attempts)
        held[id]?.firstOptions = nil
        log.add(.attempt(entry.summary.ticket, number: Int(request.attempts)))
        var sendOptions = entry.firstOptions ?? options.request
        if let authentication = entry.hostAuthentication { sendOptions.authentication = authentication }
        // Credentials of the options take precedence over those of the URL, and these over the session's.
        if let credentials = entry.urlCredentials, sendOptions.authentication == nil {
            var authentication = session.configuration.authentication
            (authentication.credentials, authentication.tokens) = (credentials, nil)
            sendOptions.authentication = authentication
        }
        return OfflineAttempt(
            session: session, request: request, body: body, secretFields: entry.secretFields,
            hostFields: entry.hostFields, credentials: credentials, options: sendOptions,
            rule: ReplayRule(
                request, secrets: secrets.adding(request.secretFields),
                acceptsRedirectedResults: options.acceptsRedirectedResults), declaredSecrets: options.secretFields,
            bodyTime: options.responseBodyTime, isStopping: isStopping)
    }

    /// Opens the body of a request; `nil` if its file has changed or is missing.
    private func openBody(of request: QueuedRequest) async throws(HTTPError) -> HTTPBody? {
        let (path, mark): (String, QueuedBody.FileIdentity)
        switch request.body {
        case .none: return HTTPBody.none
        case .inline(let bytes): return .bytes(bytes, contentType: request.contentType)
        case .own(let own): (path, mark) = (store.bodyPath(request.id), own)
        case .file(let name, let file): (path, mark) = (name, file)
        }
        let reader = QueuedBodyVerifier(files: store.files)
        let known = held[request.id]?.stamp
        let stamp = try await BlockingThreadPool.shared.run { () throws(HTTPError) in
            try reader.check(path, mark, known: known)
        }
        guard let stamp else { return nil }
        held[request.id]?.stamp = stamp
        return .file(FilePath(path), contentType: request.contentType)
    }

    private static func changed(_ body: QueuedBody) -> OfflineDeadLetter {
        guard case .file(let path, let mark) = body else {
            return OfflineDeadLetter(
                .bodyDamaged, message: "the stored body is damaged or missing; the request was not sent")
        }
        return OfflineDeadLetter(
            .bodyChanged,
            message: "\(path) has changed or is missing; it had \(mark.byteCount) bytes when the request was submitted")
    }

    /// Handles the end of an attempt. A `nil` decision means that it was cancelled.
    private func end(_ id: OfflineID, _ decision: ReplayDecision?) {
        guard let entry = held[id] else { return }
        switch decision {
        case nil:
            // Dropped, or the queue is closing. On closing, the record still states that the request is being sent.
            guard !isClosing || machine.isDropped(id) else { return }
            postpone(id, .unreachable, .zero, "it was cancelled", isReported: false)
        case .delivered(let answer): close(id, .delivered(answer))
        case .dead(let letter, let answer): close(id, .dead(letter, answer))
        case .uncertain(let letter, let cause): close(id, .uncertain(letter, cause))
        case .later(let reason, let atLeast, let message):
            postpone(id, reason, atLeast ?? .zero, message, isReported: !machine.isDropped(id))
            resumeLaneAsQueued(entry.summary.ticket.lane)
        case .unauthorized(let answer):
            postpone(id, .unauthorized, .zero, "status \(answer.statusCode)", isReported: true)
        }
    }

    private func postpone(
        _ id: OfflineID, _ reason: OfflinePostponement.Reason, _ atLeast: Duration, _ message: String, isReported: Bool
    ) {
        let (effects, delay) = machine.end(id, .later(reason, atLeast), random: Double.random(in: 0...1), now: now())
        if isReported, machine.state(of: id) == .waiting, let ticket = held[id]?.summary.ticket {
            log.add(.postponed(ticket, OfflinePostponement(reason: reason, delay: delay, message: message)))
        }
        apply(effects)
    }
}
