import MartletCaching
import MartletCore
import MartletNetwork
import MartletStorage
import MartletTransport
import SystemPackage

// What follows from the machine's decisions: tries that begin and end, ends that are written down, and what is told.
extension OfflineQueue {
    /// Takes up what was found in the directory.
    func restore(_ contents: OfflineStore.Contents) async {
        for finding in contents.findings { log.add(finding) }
        let interrupted = Set(contents.interrupted)
        let (now, wall) = (now(), wallTime())
        var effects: [ReplayMachine.Effects] = []
        requestCount = contents.summaries.count
        for var summary in contents.summaries {
            let id = summary.ticket.id
            storedByteCount += summary.storedByteCount
            var isResting = summary.stage != .waiting
            if interrupted.contains(id), let letter = await interrupt(id) {
                summary.stage = .uncertain
                isResting = true
                log.add(.uncertain(summary.ticket, letter))
            }
            held[id] = Held(summary: summary)
            effects.append(
                machine.add(
                    id, lane: summary.ticket.lane,
                    expires: summary.deadline(now: now, boot: boot, wall: wall), isResting: isResting,
                    now: now))
        }
        let isDrained = machine.isDrained
        self.isDrained.update { isDrained }
        for effects in effects { apply(effects) }
    }

    /// Notes that it is not known whether a request took effect that was being sent when a process ended.
    private func interrupt(_ id: OfflineID) async -> OfflineDeadLetter? {
        let letter = OfflineDeadLetter(
            .interrupted,
            message: "the process ended while the request was being sent, and it must not be sent twice")
        do throws(HTTPError) {
            try await store.change(id) { request in
                request.stage = .uncertain(letter)
                return true
            }
        } catch {
            // As it stands it says the same: it was being sent. The next process finds it so.
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
        let isDrained = machine.isDrained
        self.isDrained.update { isDrained }
        if effects.isDrained { log.add(.drained) }
        setAlarm()
    }

    /// How long a sleep is at most, before the clock is looked at again: the sleep may stand still while the computer is
    /// suspended, and the clock does not.
    private static let longestSleep = Duration.seconds(60)

    private func setAlarm() {
        guard !isClosing, let wake = machine.nextWake() else { return }
        if let alarm, alarm.time <= wake { return }
        alarm?.task.cancel()
        let delay = min(wake.since(now()), OfflineQueue.longestSleep)
        let task = Task { [weak self] in
            try? await Task.sleep(for: delay)
            guard !Task.isCancelled else { return }
            await self?.ring()
        }
        alarm = (wake, task)
    }

    private func ring() {
        alarm = nil
        guard !isClosing else { return }
        apply(machine.advance(to: now()))
    }

    /// Tries again whenever there is a way out that is another than before.
    func follow(_ monitor: NetworkMonitor) {
        // It does not hold the queue, which cancels it at its end.
        follower = Task { [weak self] in
            var last: NetworkPath?
            for await path in monitor {
                if last != nil, path.status == .satisfied { await self?.pathReturned() }
                last = path
            }
        }
    }

    // MARK: Tries

    private func begin(_ id: OfflineID) {
        // The queue is not held while it sends, so that letting go of it ends the tries; the store is, and with it the
        // directory's lock.
        runs.add { [weak self, store] in
            let attempt = await self?.start(id)
            if let attempt {
                let verdict = await withTaskCancellationHandler {
                    await attempt.value
                } onCancel: {
                    attempt.cancel()
                }
                await self?.finish(id, verdict)
            }
            withExtendedLifetime(store) {}
        }
    }

    /// Begins a try.
    /// - Returns: What sends; `nil` where it is not sent now.
    private func start(_ id: OfflineID) async -> Task<ReplayVerdict?, Never>? {
        guard let prepared = await prepare(id) else { return nil }
        guard !isClosing, !machine.isDropped(id) else {
            await noteUnsent(id)
            end(id, nil)
            return nil
        }
        // Unstructured, so that one can be cancelled by itself; it is awaited, and cancelled with the others.
        let task = Task { await prepared.run() }
        held[id]?.attempt = task
        return task
    }

    /// Notes how a try ended.
    private func finish(_ id: OfflineID, _ verdict: ReplayVerdict?) async {
        held[id]?.attempt = nil
        if case .later = verdict { await noteUnsent(id) }
        end(id, verdict)
    }

    /// Notes that a request which must not be sent twice was surely not taken: else the next process could not tell.
    private func noteUnsent(_ id: OfflineID) async {
        guard let entry = held[id], !entry.summary.isRepeatable, !machine.isDropped(id) else { return }
        do throws(HTTPError) {
            try await store.change(id) { request in
                guard request.stage == .sending else { return false }
                request.stage = .waiting
                return true
            }
        } catch {
            // As it stands it is uncertain to the next process, which is the safe side.
            log.add(.fileFailed(entry.summary.ticket, error))
        }
    }

    /// Reads a request, checks its body, and notes that it is about to be sent.
    /// - Returns: What sends it; `nil` where it is not sent now.
    private func prepare(_ id: OfflineID) async -> OfflineAttempt? {
        var request: FrozenRequest
        do throws(OfflineRecordFault) {
            request = try await store.load(id)
        } catch {
            guard case .record = error else {
                if error.isMissing, let ticket = held[id]?.summary.ticket {
                    // Somebody took it away: there is nothing to be sent, and nothing to wait for.
                    log.add(
                        .leftAlone(path: FilePath(store.recordPath(ticket.id)), reason: error.description))
                    close(id, .setAside)
                    return nil
                }
                end(id, .later(.storage, atLeast: nil, message: error.description))
                return nil
            }
            log.add(await store.setAside(id, error))
            close(id, .setAside)
            return nil
        }
        let body: HTTPBody
        do throws(HTTPError) {
            guard let found = try await thaw(request) else {
                end(id, .dead(OfflineQueue.changed(request.body), nil))
                return nil
            }
            body = found
        } catch {
            end(id, .later(.storage, atLeast: nil, message: error.description))
            return nil
        }
        request.attempts = request.attempts == .max ? .max : request.attempts + 1
        request.stage = .sending
        // From here on a clock that is set does not matter, whenever it was submitted.
        if let expiry = machine.expiry(of: id), expiry != .distantFuture {
            request.bootDeadline = BootDeadline(expiry, boot: boot)
        }
        do throws(HTTPError) {
            try await store.save(request)
        } catch {
            if let ticket = held[id]?.summary.ticket { log.add(.fileFailed(ticket, error)) }
            // One that may be sent twice needs no note; and a disk that is full gets room by what is delivered alone. Of another
            // fault it is not known whether what was delivered can be removed.
            guard error.code == .diskFull, held[id]?.summary.isRepeatable == true else {
                end(id, .later(.storage, atLeast: nil, message: error.description))
                return nil
            }
        }
        guard let entry = held[id] else { return nil }
        held[id]?.summary.attempts = Int(request.attempts)
        held[id]?.firstOptions = nil
        log.add(.attempt(entry.summary.ticket, number: Int(request.attempts)))
        return OfflineAttempt(
            session: session, request: request, body: body, secretFields: entry.secretFields,
            credentials: credentials, options: entry.firstOptions ?? options.request,
            rule: ReplayRule(
                request, secrets: secrets.adding(request.secretFields),
                acceptsRedirectedResults: options.acceptsRedirectedResults),
            declaredSecrets: options.secretFields, bodyTime: options.responseBodyTime, isStopping: isStopping)
    }

    /// The body of a request; `nil` where it is not what it was.
    private func thaw(_ request: FrozenRequest) async throws(HTTPError) -> HTTPBody? {
        let (path, mark): (String, FrozenBody.FileMark)
        switch request.body {
        case .none: return HTTPBody.none
        case .inline(let bytes): return .bytes(bytes, contentType: request.contentType)
        case .own(let own): (path, mark) = (store.bodyPath(request.id), own)
        case .file(let name, let file): (path, mark) = (name, file)
        }
        let reader = FrozenBodyReader(files: store.files)
        let known = held[request.id]?.stamp
        let stamp = try await BlockingWorkers.shared.run { () throws(HTTPError) in
            try reader.check(path, mark, known: known)
        }
        guard let stamp else { return nil }
        held[request.id]?.stamp = stamp
        return .file(FilePath(path), contentType: request.contentType)
    }

    private static func changed(_ body: FrozenBody) -> OfflineDeadLetter {
        guard case .file(let path, let mark) = body else {
            return OfflineDeadLetter(
                .bodyDamaged, message: "what was kept of the body is damaged, or gone: it is not sent")
        }
        return OfflineDeadLetter(
            .bodyChanged,
            message:
                "\(path) is not the file of \(mark.byteCount) bytes that it was when the request was submitted"
        )
    }

    /// Notes how a try ended; `nil` where it was cancelled.
    private func end(_ id: OfflineID, _ verdict: ReplayVerdict?) {
        guard let entry = held[id] else { return }
        switch verdict {
        case nil:
            // Cancelled, to be dropped or since the queue is closing: what is on the disk says that it was being sent.
            guard !isClosing || machine.isDropped(id) else { return }
            apply(postpone(id, .unreachable, .zero, "it was cancelled", isTold: false))
        case .delivered(let answer): close(id, .delivered(answer))
        case .dead(let letter, let answer): close(id, .dead(letter, answer))
        case .uncertain(let letter, let cause): close(id, .uncertain(letter, cause))
        case .later(let reason, let atLeast, let message):
            apply(postpone(id, reason, atLeast ?? .zero, message, isTold: !machine.isDropped(id)))
            freezeLane(entry.summary.ticket.lane)
        case .unauthorized(let answer):
            apply(postpone(id, .unauthorized, .zero, "status \(answer.statusCode)", isTold: true))
        }
    }

    private func postpone(
        _ id: OfflineID, _ reason: OfflinePostponement.Reason, _ atLeast: Duration, _ message: String,
        isTold: Bool
    ) -> ReplayMachine.Effects {
        let (effects, delay) = machine.end(
            id, .later(reason, atLeast), random: Double.random(in: 0...1), now: now())
        if isTold, machine.place(of: id) == .waiting, let ticket = held[id]?.summary.ticket {
            log.add(.postponed(ticket, OfflinePostponement(reason, delay: delay, message: message)))
        }
        return effects
    }
}
