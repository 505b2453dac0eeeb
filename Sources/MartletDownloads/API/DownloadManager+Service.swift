#if ServiceLifecycle
    public import ServiceLifecycle

    /// A download manager as a service of a `ServiceGroup`, with the package trait `ServiceLifecycle`.
    extension DownloadManager: Service {
        /// Waits for the graceful shutdown, then calls ``close()``. The next manager of the directory
        /// resumes the unfinished downloads. It returns only after the graceful shutdown, even if the manager was
        /// closed earlier.
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
