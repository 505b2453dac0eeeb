#if ServiceLifecycle
    public import MartletDownloads
    public import MartletOffline
    public import ServiceLifecycle

    /// A download manager as a service of a `ServiceGroup`, with the package trait `ServiceLifecycle`.
    extension DownloadManager: Service {
        /// Waits for the graceful shutdown, then calls ``close()``. The next manager of the directory resumes the
        /// unfinished downloads. It returns only after the graceful shutdown, even if the manager was closed earlier.
        /// - Throws: `CancellationError` if the task is cancelled, also after ``close()``.
        public func run() async throws { try await closingAtShutdown { await self.close() } }
    }

    /// An offline queue as a service of a `ServiceGroup`, with the package trait `ServiceLifecycle`.
    extension OfflineQueue: Service {
        /// Waits for the graceful shutdown, then calls ``close()``. The next queue of the directory sends the remaining
        /// requests. It returns only after the graceful shutdown, even if the queue was closed earlier.
        /// - Throws: `CancellationError` if the task is cancelled, also after ``close()``.
        public func run() async throws { try await closingAtShutdown { await self.close() } }
    }

    /// Waits for the graceful shutdown, then closes a service, also if the task is cancelled.
    private func closingAtShutdown(_ close: @escaping @Sendable () async -> Void) async throws {
        do { try await gracefulShutdown() } catch {
            // A task of its own, because closing in a cancelled task would not wait for the running work.
            await Task { await close() }.value
            throw error
        }
        await close()
    }
#endif
