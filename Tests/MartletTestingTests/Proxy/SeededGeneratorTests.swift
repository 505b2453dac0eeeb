import MartletTesting
import Testing

@Suite("Seeded random numbers")
struct SeededGeneratorTests {
    @Test("The numbers match SplitMix64")
    func numbers() {
        var generator = SeededGenerator(seed: 1_234_567)
        let numbers = (0..<3).map { _ in generator.next() }
        #expect(numbers == [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423])
    }

    @Test("Streams of one seed share no sequence of numbers")
    func streams() {
        var seen: Set<UInt64> = []
        for stream in 0..<50 as Range<UInt64> {
            var generator = SeededGenerator(seed: 7, stream: stream)
            for _ in 0..<50 { seen.insert(generator.next()) }
        }
        #expect(seen.count == 2500)
    }
}
