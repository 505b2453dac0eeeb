import MartletTransport
import Synchronization

/// Hands elements from the task that reads a stream to the one that asks for them, one at a time.
///
/// The reader waits while the element before has not been taken, so that no more than one is ever kept, and the peer is
/// held by the TCP window. Either side can end it.
final class EventRelay<Element: Sendable>: Sendable {
    private enum Ending {
        case finished
        case failed(any Error)
        /// The taking side has gone.
        case cancelled
    }

    private struct State {
        var element: Element?
        var ending: Ending?
        var taker: Waiter<Void>?
        var giver: Waiter<Void>?
    }

    /// Guards the slot: both sides.
    private let state = Mutex(State())

    /// Offers an element, once there is room for it.
    /// - Returns: Whether it can still be taken; if not, nobody will ask for more.
    func give(_ element: Element) async -> Bool {
        while true {
            let (isGiven, isOver, taker) = state.withLock { state -> (Bool, Bool, Waiter<Void>?) in
                if state.ending != nil { return (false, true, nil) }
                guard state.element == nil else { return (false, false, nil) }
                state.element = element
                return (true, false, state.taker.take())
            }
            taker?.resume(returning: ())
            if isGiven || isOver { return isGiven }
            await suspend { (waiter: Waiter<Void>) in
                let isLate = state.withLock { state in
                    if state.element == nil || state.ending != nil { return true }
                    state.giver = waiter
                    return false
                }
                if isLate { waiter.resume(returning: ()) }
            }
        }
    }

    /// Ends it from the reader's side; what was given before is still taken.
    func finish(throwing error: (any Error)? = nil) {
        end(error.map { .failed($0) } ?? .finished)
    }

    /// Ends it from the taker's side: nothing more is handed out.
    func cancel() {
        end(.cancelled)
    }

    /// The next element; `nil` when it was finished.
    /// - Throws: What the reader failed with; `CancellationError` once the task is cancelled.
    func take() async throws -> Element? {
        try await withTaskCancellationHandler {
            while true {
                let (result, giver) = state.withLock {
                    state -> (Result<Element?, any Error>?, Waiter<Void>?) in
                    if case .cancelled = state.ending { return (.failure(CancellationError()), nil) }
                    if let element = state.element.take() { return (.success(element), state.giver.take()) }
                    switch state.ending {
                    case .failed(let error):
                        // An error is thrown once, as sequences do.
                        state.ending = .finished
                        return (.failure(error), nil)
                    case .finished: return (.success(nil), nil)
                    default: return (nil, nil)
                    }
                }
                giver?.resume(returning: ())
                if let result { return try result.get() }
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = state.withLock { state in
                        if state.element != nil || state.ending != nil { return true }
                        state.taker = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            }
        } onCancel: {
            cancel()
        }
    }

    private func end(_ ending: Ending) {
        let waiters = state.withLock { state -> [Waiter<Void>?] in
            if case .cancelled = ending {
                // Whoever cancels wants nothing more, also of what was there.
                state.element = nil
                state.ending = .cancelled
            } else if state.ending == nil {
                state.ending = ending
            }
            return [state.taker.take(), state.giver.take()]
        }
        for waiter in waiters { waiter?.resume(returning: ()) }
    }
}
