import MartletCache
import MartletTransport
import Synchronization

/// What those do who read the body, each at its own pace.
extension CacheFlight {
    /// What a reader gets next.
    func next(_ member: UInt64) -> Piece {
        let piece = state.withLock { state -> Piece in
            guard let offset = state.offsets[member] else {
                return .failed(
                    state.detached.contains(member) ? CacheFlight.tooSlow : CancellationError())
            }
            if state.end == nil, !state.isReleased, state.briefByteCount != nil,
                state.collectors.contains(member)
            {
                return .wait(state.wait(of: member))
            }
            if offset < state.start {
                guard let writer = state.writer, offset < state.stored else {
                    return .failed(CacheFlight.lost)
                }
                return .stored(writer, at: offset)
            }
            if offset < state.received {
                var position = state.start
                for chunk in state.chunks {
                    let end = position + UInt64(chunk.count)
                    if offset < end {
                        state.offsets[member] = end
                        trim(&state)
                        let skipped = Int(offset - position)
                        // What still grows is not handed out itself: whoever held it would make the growing copy it.
                        let isSettled = !state.isGathering || state.end != nil
                        return .bytes(skipped == 0 && isSettled ? chunk : Array(chunk[skipped...]))
                    }
                    position = end
                }
            }
            switch state.end {
            case .complete: return .end
            case .failed(let error): return .failed(error)
            case nil: return state.isReleased ? .end : .wait(state.wait(of: member))
            }
        }
        wakePump()
        return piece
    }

    /// Notes that a reader takes all of the body, and no part of it sooner where it is brief.
    func collect(_ member: UInt64) {
        state.withLock { state in
            guard state.offsets[member] != nil else { return }
            state.collectors.insert(member)
            if state.briefByteCount != nil, !state.isWhole { state.isGathering = true }
        }
        wakePump()
    }

    /// What is held of a brief body for a reader who takes all of it and was given nothing.
    func collected(_ member: UInt64) -> [UInt8] {
        state.withLock { state in
            guard state.briefByteCount != nil, state.collectors.contains(member), state.offsets[member] == 0,
                state.start == 0
            else { return [] }
            return Array(state.chunks.joined())
        }
    }

    /// Notes what a reader has read back from the store.
    func advance(_ member: UInt64, by count: Int) {
        state.withLock { state in
            if let offset = state.offsets[member] { state.offsets[member] = offset + UInt64(count) }
            trim(&state)
        }
        wakePump()
    }

    /// Notes that what is stored cannot be read back: nobody begins with that any more.
    func noteUnreadable() {
        state.withLock { $0.isUnreadable = true }
    }

    /// Lets go of what no reader needs, or what can be read back.
    func trim(_ state: inout State) {
        guard state.received - state.start > UInt64(CacheFlight.least) else { return }
        let slowest = state.offsets.values.min() ?? state.received
        // As long as it is being stored, nothing goes that has not been written: whoever joins has to find it there.
        let isStoring = state.writer?.isAlive == true
        if isStoring, state.briefByteCount != nil { return }
        var dispensable = isStoring ? state.stored : max(state.stored, slowest)
        // Whoever reads first does not depend on the disk: not much is received ahead of it.
        if !isUnattended, let fastest = state.offsets.values.max() {
            dispensable = min(dispensable, fastest)
        }
        while let first = state.chunks.first, state.received - state.start > UInt64(CacheFlight.least),
            state.start + UInt64(first.count) <= dispensable
        {
            state.start += UInt64(first.count)
            state.chunks.removeFirst()
        }
    }

    /// The error of a reader for whom the others could not wait. A call that has handed nothing on yet asks again.
    private static let tooSlow = HTTPError(
        .storedBodyDamaged, phase: .receivingBody,
        message:
            "the body was read too slowly: other requests share its transfer, and what they are ahead by cannot be stored"
    )

    /// What a reader is told for whom the store has lost what it had.
    private static let lost = HTTPError(
        .storedBodyDamaged, phase: .receivingBody, message: "what was stored of the body cannot be read back")
}
