import MartletCore

// Outcomes of requests: they are recorded and then reported.
extension OfflineQueue {
    /// Records and reports the outcome of a request whose attempt has ended.
    func close(_ id: OfflineID, _ settlement: Settlement) {
        held[id]?.settlement = settlement
        apply(machine.end(id, .settled, random: 0, now: now()).effects)
        settle(id)
    }

    func settle(_ id: OfflineID) {
        runs.add { [weak self, store] in
            await self?.record(id)
            withExtendedLifetime(store) {}
        }
    }

    private func record(_ id: OfflineID) async {
        guard let entry = held[id], let settlement = entry.settlement else { return }
        var isResting = false
        // A dead letter is not stored for a caller that waits and gets the response, nor for a dropped request.
        let isUseless = entry.watch != nil || machine.isDropped(id)
        do throws(HTTPError) {
            switch settlement {
            case .delivered, .dropped: try await store.remove(id)
            case .expired:
                // Also stored for a waiting caller, which gets a ticket.
                let letter = OfflineDeadLetter(.expired, message: "the request expired before a server accepted it")
                isResting = try await rest(id, .dead(letter), isUseless: machine.isDropped(id))
            case .setAside: break
            case .dead(let letter, _): isResting = try await rest(id, .dead(letter), isUseless: isUseless)
            case .uncertain(let letter, _): isResting = try await rest(id, .uncertain(letter), isUseless: isUseless)
            }
        } catch {
            log.add(.fileFailed(entry.summary.ticket, error))
            // The response has arrived, even if the file cannot be removed.
            if case .delivered(let answer) = settlement { resume(id, .response(answer)) }
            apply(machine.settlingFailed(id, random: Double.random(in: 0...1), now: now()).effects)
            resumeLaneAsQueued(entry.summary.ticket.lane)
            return
        }
        report(settlement, entry, isResting: isResting)
        apply(machine.settled(id, isResting: isResting, now: now()))
        entry.isGone?.update { true }
    }

    /// Records that a request is not sent again automatically, or removes it if the record is useless.
    /// - Returns: Whether it stays.
    private func rest(_ id: OfflineID, _ stage: QueuedRequest.Stage, isUseless: Bool) async throws(HTTPError) -> Bool {
        guard !isUseless else {
            try await store.remove(id)
            return false
        }
        let byteCount = try await store.change(id) { request in
            request.stage = stage
            return true
        }
        recount(id, byteCount)
        return true
    }

    /// Updates the number of bytes of a request in the directory.
    func recount(_ id: OfflineID, _ byteCount: UInt64) {
        guard let old = held[id]?.summary.storedByteCount else { return }
        storedByteCount = storedByteCount - min(storedByteCount, old) + byteCount
        held[id]?.summary.storedByteCount = byteCount
    }

    private func report(_ settlement: Settlement, _ entry: Held, isResting: Bool) {
        let ticket = entry.summary.ticket
        if entry.watch != nil { unwatch(ticket) }
        if isResting {
            held[ticket.id]?.settlement = nil
            held[ticket.id]?.summary.isResting = true
        } else {
            recount(ticket.id, 0)
            held[ticket.id] = nil
            requestCount -= 1
        }
        let outcome: Result<OfflineOutcome, any Error>
        switch settlement {
        case .delivered(let answer):
            log.add(.delivered(ticket, answer))
            outcome = .success(.response(answer))
        case .dead(let letter, let answer):
            log.add(.dead(ticket, letter))
            outcome =
                answer.map { .success(.response($0)) }
                ?? .failure(HTTPError(.invalidRequest, phase: .preparing, message: letter.message))
        case .uncertain(let letter, let cause):
            log.add(.uncertain(ticket, letter))
            switch cause {
            case .answer(let answer): outcome = .success(.response(answer))
            case .failure(let error): outcome = .failure(error)
            }
        case .expired:
            held[ticket.id]?.watch = nil
            log.add(.expired(ticket))
            outcome = .success(.queued(ticket))
        case .dropped, .setAside:
            if case .dropped = settlement { log.add(.dropped(ticket)) }
            outcome = .failure(CancellationError())
        }
        entry.watch?.fulfill(outcome)
    }

    /// Resumes the caller that waits for a request's first attempt, with a ticket: the request is sent later.
    func resumeAsQueued(_ id: OfflineID) { if let ticket = held[id]?.summary.ticket { resume(id, .queued(ticket)) } }

    /// Resumes all callers of a lane with tickets: the first request could not be sent, and the others wait for it.
    func resumeLaneAsQueued(_ lane: String) {
        for id in watched[lane] ?? [] where machine.state(of: id) != .settling { resumeAsQueued(id) }
    }

    private func resume(_ id: OfflineID, _ outcome: OfflineOutcome) {
        guard let entry = held[id], let watch = entry.watch else { return }
        held[id]?.watch = nil
        unwatch(entry.summary.ticket)
        watch.fulfill(.success(outcome))
    }

    private func unwatch(_ ticket: OfflineTicket) {
        watched[ticket.lane]?.remove(ticket.id)
        if watched[ticket.lane]?.isEmpty == true { watched[ticket.lane] = nil }
    }
}
