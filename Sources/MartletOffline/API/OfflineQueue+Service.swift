#if ServiceLifecycle
    public import ServiceLifecycle

    /// An offline queue as a service of a `ServiceGroup`, with the package trait `ServiceLifecycle`.
    extension OfflineQueue: Service {
        /// Waits for the graceful shutdown, then calls ``close()``. The next queue of the directory
        /// sends the remaining requests. It returns only after the graceful shutdown, even if the queue was closed
        /// earlier.
        /// - Throws: `CancellationError` if the task is cancelled, also after ``close()``.
        public func run() async throws {
            do { try await gracefulShutdown() } catch {
                // A task of its own, because closing in a cancelled task would not wait for the running work.
                _ = await Task { await close() }.value
                throw error
            }
            await close()
        }
    }
#endif
