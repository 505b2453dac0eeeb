import MartletCaching
import MartletCore
import MartletStorage
import MartletTransport

// How requests end: what is written down, and then told.
extension OfflineQueue {
    /// Begins the end of a request whose try has ended.
    func close(_ id: OfflineID, _ settlement: Settlement) {
        held[id]?.settlement = settlement
        let (effects, _) = machine.end(id, .settled, random: 0, now: now())
        apply(effects)
        settle(id)
    }

    func settle(_ id: OfflineID) {
        runs.add { [weak self, store] in
            await self?.writeDown(id)
            withExtendedLifetime(store) {}
        }
    }

    private func writeDown(_ id: OfflineID) async {
        guard let entry = held[id], let settlement = entry.settlement else { return }
        var isResting = false
        // Whoever waits for the answer gets it, and of one that was dropped nothing is kept.
        let isUseless = entry.watch != nil || machine.isDropped(id)
        do throws(HTTPError) {
            switch settlement {
            case .delivered, .dropped: try await store.remove(id)
            case .expired:
                // Who waits for its first try gets a ticket for it, so it stays.
                let letter = OfflineDeadLetter(
                    .expired, message: "its time was up before a server accepted it")
                isResting = try await rest(id, .dead(letter), isUseless: machine.isDropped(id))
            case .setAside: break
            case .dead(let letter, _): isResting = try await rest(id, .dead(letter), isUseless: isUseless)
            case .uncertain(let letter, _):
                isResting = try await rest(id, .uncertain(letter), isUseless: isUseless)
            }
        } catch {
            log.add(.fileFailed(entry.summary.ticket, error))
            // The answer is there, whatever becomes of the file.
            if case .delivered(let answer) = settlement, let watch = held[id]?.watch {
                held[id]?.watch = nil
                unwatch(entry.summary.ticket)
                watch.fulfil(.success(.answered(answer)))
            }
            let (effects, _) = machine.settlingFailed(id, random: Double.random(in: 0...1), now: now())
            apply(effects)
            freezeLane(entry.summary.ticket.lane)
            return
        }
        tell(settlement, entry, isResting: isResting)
        apply(machine.settled(id, isResting: isResting, now: now()))
        entry.isGone?.update { true }
    }

    /// Writes down that a request is not sent again by itself; one that is of no use any more is removed instead.
    /// - Returns: Whether it stays.
    private func rest(
        _ id: OfflineID, _ stage: FrozenRequest.Stage, isUseless: Bool
    ) async throws(HTTPError) -> Bool {
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

    /// Notes how many bytes a request has in the directory now.
    func recount(_ id: OfflineID, _ byteCount: UInt64) {
        guard let old = held[id]?.summary.storedByteCount else { return }
        storedByteCount = storedByteCount - min(storedByteCount, old) + byteCount
        held[id]?.summary.storedByteCount = byteCount
    }

    private func tell(_ settlement: Settlement, _ entry: Held, isResting: Bool) {
        let ticket = entry.summary.ticket
        if entry.watch != nil { unwatch(ticket) }
        if isResting {
            held[ticket.id]?.settlement = nil
        } else {
            recount(ticket.id, 0)
            held[ticket.id] = nil
            requestCount -= 1
        }
        switch settlement {
        case .delivered(let answer):
            log.add(.delivered(ticket, answer))
            entry.watch?.fulfil(.success(.answered(answer)))
        case .dead(let letter, let answer):
            held[ticket.id]?.summary.stage = .dead
            log.add(.dead(ticket, letter))
            if let answer {
                entry.watch?.fulfil(.success(.answered(answer)))
            } else {
                entry.watch?.fulfil(
                    .failure(HTTPError(.invalidRequest, phase: .preparing, message: letter.message)))
            }
        case .uncertain(let letter, let cause):
            held[ticket.id]?.summary.stage = .uncertain
            log.add(.uncertain(ticket, letter))
            switch cause {
            case .answer(let answer): entry.watch?.fulfil(.success(.answered(answer)))
            case .failure(let error): entry.watch?.fulfil(.failure(error))
            }
        case .expired:
            held[ticket.id]?.summary.stage = .dead
            held[ticket.id]?.watch = nil
            log.add(.expired(ticket))
            entry.watch?.fulfil(.success(.frozen(ticket)))
        case .dropped, .setAside:
            if case .dropped = settlement { log.add(.dropped(ticket)) }
            entry.watch?.fulfil(.failure(CancellationError()))
        }
    }

    /// Tells who waits for a request's first try that it is sent later.
    func freeze(_ id: OfflineID) {
        guard let entry = held[id], let watch = entry.watch else { return }
        held[id]?.watch = nil
        unwatch(entry.summary.ticket)
        watch.fulfil(.success(.frozen(entry.summary.ticket)))
    }

    /// The same for all of a lane whose first request could not be sent: they wait for it.
    func freezeLane(_ lane: String) {
        for id in watched[lane] ?? [] where machine.place(of: id) != .settling { freeze(id) }
    }

    private func unwatch(_ ticket: OfflineTicket) {
        watched[ticket.lane]?.remove(ticket.id)
        if watched[ticket.lane]?.isEmpty == true { watched[ticket.lane] = nil }
    }
}
