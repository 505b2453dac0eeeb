import MartletTransport
import Synchronization

/// A channel that passes elements from one task to another, one at a time. The giver waits for the taker, so that at
/// most one element is stored and the TCP window slows the peer down.
final class Handoff<Element: Sendable>: Sendable {
    private typealias Outcome = Result<Void, any Error>

    private struct State {
        var element: Element?
        /// Whether the last given element was taken.
        var isTaken = true
        /// The end of the channel, set by the giver.
        var outcome: Outcome?
        /// Whether the taker has cancelled.
        var isCancelled = false
        var giver: OneShot<Void>?
        var taker: OneShot<Void>?
    }

    /// The lock on the slot, used by both sides.
    private let state = Mutex(State())

    /// Passes an element once the previous one was taken.
    /// - Returns: Whether the element was accepted; `false` after the end, and if this task is cancelled while waiting.
    func give(_ element: Element) async -> Bool {
        guard await isTaken() else { return false }
        let (isGiven, taker) = state.withLock { state -> (Bool, OneShot<Void>?) in
            guard state.outcome == nil, !state.isCancelled else { return (false, nil) }
            (state.element, state.isTaken) = (element, false)
            return (true, state.taker.take())
        }
        taker?.fulfill(())
        return isGiven
    }

    /// Waits until the last given element is taken.
    /// - Returns: Whether the element was taken; `false` if the channel ended first, or this task is cancelled.
    func isTaken() async -> Bool {
        let turn = OneShot<Void>()
        let isWaiting = state.withLock { state in
            guard state.element != nil else { return false }
            state.giver = turn
            return true
        }
        if isWaiting { _ = await turn.waitUnlessCancelled() }
        return state.withLock { $0.isTaken }
    }

    /// Ends the channel; an element that was given before can still be taken.
    func finish(throwing error: (any Error)? = nil) {
        end { $0.outcome = $0.outcome ?? error.map { .failure($0) } ?? .success(()) }
    }

    /// Ends the channel with `CancellationError`, and discards an element that was not taken.
    func abandon() {
        end { state in
            state.outcome = state.outcome ?? .failure(CancellationError())
            state.element = nil
        }
    }

    /// Returns the next element; `nil` after the end.
    /// - Throws: The error of the end; `CancellationError` after ``cancel()`` and in a cancelled task.
    func take() async throws -> Element? {
        while true {
            try Task.checkCancellation()
            let turn = OneShot<Void>()
            let (element, outcome, giver) = state.withLock { state -> (Element?, Outcome?, OneShot<Void>?) in
                if let element = state.element.take() {
                    state.isTaken = true
                    return (element, nil, state.giver.take())
                }
                state.taker = turn
                return (nil, state.outcome ?? (state.isCancelled ? .failure(CancellationError()) : nil), nil)
            }
            giver?.fulfill(())
            if let element { return element }
            if let outcome {
                try outcome.get()
                return nil
            }
            _ = await turn.waitUnlessCancelled()
        }
    }

    /// Ends the channel as the taker: no more elements are passed, and the giver stops waiting.
    func cancel() { end { ($0.isCancelled, $0.element) = (true, nil) } }

    private func end(_ change: (inout State) -> Void) {
        // A discarded element is released outside of the lock: it may be the last reference to a connection.
        let (turns, _) = state.withLock { state -> ([OneShot<Void>?], Element?) in
            let element = state.element
            change(&state)
            return ([state.giver.take(), state.taker.take()], element)
        }
        for turn in turns { turn?.fulfill(()) }
    }
}

/// A response that a separate task reads, element by element. Releasing the last reference cancels the task.
final class BackgroundRead<Element: Sendable>: Sendable {
    let elements = Handoff<Element>()
    private let task: Task<Void, Never>

    init(_ read: @escaping @Sendable (Handoff<Element>) async -> Void) {
        // Unstructured, because a stream is read within its call's closure, and the caller's loop runs elsewhere.
        task = Task { [elements] in await read(elements) }
    }

    deinit {
        elements.cancel()
        task.cancel()
    }
}
