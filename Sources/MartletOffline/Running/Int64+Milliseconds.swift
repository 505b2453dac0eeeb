extension Int64 {
    /// A moment, in milliseconds, so many later; the latest there is where that is beyond it.
    func advanced(byMilliseconds count: Int64) -> Int64 {
        let (sum, overflows) = addingReportingOverflow(count)
        return overflows ? .max : sum
    }
}
