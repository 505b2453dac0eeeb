import MartletTesting
import MartletTestSupport
import MartletTransport

/// Returns the value of a count after it has been stable for a while.
func settled(within limit: Duration = TestTimeouts.long, _ count: () -> UInt64) async -> UInt64 {
    var last = count()
    var since = MonotonicTime.now()
    var looks = 0
    _ = await eventually(within: limit) {
        let now = count()
        if now != last { (last, since, looks) = (now, MonotonicTime.now(), 0) }
        looks += 1
        return looks >= 30 && MonotonicTime.now().since(since) >= .milliseconds(200)
    }
    return last
}
