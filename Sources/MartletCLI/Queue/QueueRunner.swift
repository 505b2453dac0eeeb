import Martlet

/// Prints what happens in a queue, until it is to end.
struct QueueRunner: Sendable {
    /// The queue, which sends.
    let queue: OfflineQueue
    /// When it ends, and how events are printed.
    let wish: QueueWish
    /// What is told on standard error.
    let global: GlobalOptions

    /// Runs until it is interrupted, or nothing waits any more where that is the end, or what happens cannot be printed; then
    /// closes the queue.
    /// - Parameter interruption: Returns when it is to end.
    /// - Returns: What the program exits with.
    func run(interruption: @escaping @Sendable () async -> Int32) async -> ExitStatus {
        let (ends, end) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let events = queue.events
        // Unstructured, all three: a signal may never come, and each of them may be the end of the others.
        // A signal is waited for before anything is printed, since who reads it may send one.
        let waiting = Task.immediate {
            _ = await interruption()
            end.yield()
        }
        let printing = Task { await print(events, end) }
        let draining =
            wish.endsWhenEmpty
            ? Task { [queue] in
                if (try? await queue.drained) != nil { end.yield() }
            } : nil
        for await _ in ends { break }
        await queue.close()
        draining?.cancel()
        waiting.cancel()
        let (tally, failure) = await printing.value
        let left = await tally.left(pending: queue.pendingCount, resting: queue.restingCount)
        if let failure {
            if !failure.isClosedPipe, global.tellsErrors { await Console.complain("martlet: \(failure)\n") }
            return .writeFailed
        }
        let status = tally.status(left: left)
        let line = wish.isJSON ? tally.json(left: left, status) : tally.text(left: left)
        return (try? await Console.write(line + "\n")) == nil ? .writeFailed : status
    }

    /// Prints events to their end. One that cannot be printed is the end of the run.
    private func print(
        _ events: EventSequence<OfflineEvent>, _ end: AsyncStream<Void>.Continuation
    ) async -> (QueueTally, OutputError?) {
        var tally = QueueTally()
        var failure: OutputError?
        for await event in events {
            tally.note(event)
            guard failure == nil else { continue }
            do throws(OutputError) {
                try await Console.write(
                    (wish.isJSON ? QueueEventJSON.line(event) : QueueEventText.line(event)) + "\n")
            } catch {
                failure = error
                end.yield()
            }
        }
        return (tally, failure)
    }
}
