import MartletDownloads
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Segment plan: random events")
struct SegmentPlanModelTests {
    /// A plan, and the state of a disk that follows it.
    private struct Model {
        var plan: SegmentPlan
        let total: UInt64
        var random: SeededGenerator
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var disk: RangeSet<UInt64>
        /// The received ranges of each transfer that are not written yet.
        var waiting: [UInt64: [Range<UInt64>]] = [:]
        var speeds: [UInt64: Double] = [:]
        var lastID: UInt64 = 0

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            total = UInt64.random(in: 0...48 << 20, using: &random)
            var there = RangeSet<UInt64>()
            for _ in 0..<Int.random(in: 0...3, using: &random) where total > 0 {
                let from = UInt64.random(in: 0..<total, using: &random)
                there.insert(contentsOf: from..<UInt64.random(in: from...total, using: &random))
            }
            disk = there
            let window: UInt64? = Bool.random(using: &random) ? nil : 6 << 20
            plan = SegmentPlan(total: total, written: there, window: window)
        }

        mutating func begin() {
            guard plan.claims.count < 6 else { return }
            lastID += 1
            guard let range = plan.claim(lastID, now: now) else { return }
            #expect(!range.isEmpty && range.upperBound <= total)
            speeds[lastID] = [0, 2e4, 1e6, 5e6, 2e7].randomElement(using: &random) ?? 1e6
        }

        /// Lets every transfer receive bytes, and writes some of them.
        mutating func pass(_ seconds: Double, writesAll: Bool) {
            now = now.advanced(by: .milliseconds(Int(seconds * 1_000)))
            for id in plan.claims.keys.sorted() {
                let count = UInt64((speeds[id] ?? 0) * seconds)
                guard let place = plan.accept(id, count, now: now) else { continue }
                #expect(place.offset + place.count <= total)
                if place.count > 0 {
                    waiting[id, default: []].append(place.offset..<place.offset + place.count)
                }
                if writesAll || Bool.random(using: &random) { write(id) }
            }
        }

        mutating func write(_ id: UInt64) {
            for range in waiting.removeValue(forKey: id) ?? [] {
                disk.insert(contentsOf: range)
                if let loser = plan.wrote(id, range) { end(loser) }
            }
            if let claim = plan.claims[id], claim.writtenEnd >= claim.range.upperBound { end(id) }
        }

        mutating func end(_ id: UInt64) {
            waiting[id] = nil
            plan.release(id, now: now)
        }

        /// The first violated invariant; `nil` if all hold.
        var problem: String? {
            if plan.written != disk { return "it takes other bytes for written than are there" }
            let claims = plan.claims.sorted { $0.key < $1.key }
            for (place, (id, one)) in claims.enumerated() {
                guard one.range.upperBound <= total, one.position <= one.range.upperBound,
                    one.writtenEnd <= one.position
                else { return "\(id) is beyond its bounds: \(one)" }
                if let rival = one.rival, plan.claims[rival]?.rival != id { return "\(id) races alone" }
                for (number, other) in claims[(place + 1)...] where other.rival != id {
                    let from = max(one.writtenEnd, other.writtenEnd)
                    let to = min(one.range.upperBound, other.range.upperBound)
                    if from < to { return "\(id) and \(number) claim the same" }
                }
            }
            return nil
        }
    }

    @Test(
        "A thousand downloads with random transfers get all bytes, and only races fetch bytes twice"
    )
    func random() async {
        for seed in 0..<1_000 as Range<UInt64> {
            var model = Model(seed: seed)
            for _ in 0..<Int.random(in: 5...40, using: &model.random) {
                switch Int.random(in: 0..<10, using: &model.random) {
                case 0...3: model.begin()
                case 4...7: model.pass(Double.random(in: 0...1.5, using: &model.random), writesAll: false)
                case 8:
                    if let id = model.plan.claims.keys.sorted().randomElement(using: &model.random) {
                        model.end(id)
                    }
                default:
                    if let id = model.plan.claims.keys.sorted().randomElement(using: &model.random),
                        let claim = model.plan.claims[id], claim.position < claim.range.upperBound
                    {
                        let end = claim.position + (claim.range.upperBound - claim.position) / 2
                        model.plan.shorten(id, to: end)
                        model.write(id)
                    }
                }
                if let problem = model.problem { Issue.record("seed \(seed): \(problem)") }
            }
            // Once transfers succeed, the plan completes, whatever the others do.
            var rounds = 0
            while !model.plan.isComplete, rounds < 2_000 {
                rounds += 1
                model.begin()
                if let id = model.plan.claims.keys.max() { model.speeds[id] = 2e7 }
                model.pass(1, writesAll: true)
                if rounds % 100 == 0, let id = model.plan.claims.keys.min() { model.end(id) }
            }
            #expect(model.plan.isComplete, "seed \(seed)")
            #expect(model.problem == nil, "seed \(seed)")
            if seed % 50 == 0 { await Task.yield() }
        }
    }
}
