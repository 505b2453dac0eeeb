extension NewestValue<Bool> {
    /// Waits until it is true.
    /// - Returns: Whether it is; `false` when it has ended before, or the task was cancelled.
    @discardableResult
    package func becomesTrue() async -> Bool {
        var seen: UInt64 = 0
        while let (version, isTrue) = await next(after: seen) {
            if isTrue { return true }
            seen = version
        }
        return false
    }
}
