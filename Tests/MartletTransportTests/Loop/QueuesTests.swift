import MartletTransport
import Testing

@Suite("FIFO queues and heaps")
struct QueuesTests {
    @Test("A queue has the elements of an array after any changes", arguments: 0..<20)
    func queue(seed: UInt64) {
        var random = RaceGenerator(state: seed)
        var queue = FIFOQueue<Int>(0..<Int(seed % 3))
        var model = Array(0..<Int(seed % 3))
        for number in 0..<2000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                queue.append(number)
                model.append(number)
            case 5..<8:
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            case 8:
                let index = Int.random(in: 0...model.count, using: &random)
                queue.insert(number, at: index)
                model.insert(number, at: index)
            default:
                guard let index = model.indices.randomElement(using: &random) else { continue }
                #expect(queue.remove(at: index) == model.remove(at: index))
            }
            #expect(queue.elementsEqual(model) && queue.first == model.first && queue.count == model.count)
        }
    }

    @Test("A queue releases an element when it is removed")
    func release() {
        final class Object {}
        var queue = FIFOQueue<Object>()
        queue.append(Object())
        queue.append(Object())
        weak let first = queue.first
        #expect(first != nil)
        _ = queue.popFirst()
        #expect(first == nil && queue.count == 1)
    }

    @Test("A heap returns its elements sorted, also those added after others were removed", arguments: 0..<20)
    func heap(seed: UInt64) {
        var random = RaceGenerator(state: seed)
        var model = (0..<Int(seed * 7)).map { _ in Int.random(in: 0..<50, using: &random) }
        var heap = MinHeap(model)
        for _ in 0..<1000 {
            if Bool.random(using: &random) {
                let element = Int.random(in: 0..<50, using: &random)
                heap.insert(element)
                model.append(element)
            } else {
                model.sort()
                #expect(heap.popMin() == (model.isEmpty ? nil : model.removeFirst()))
            }
            #expect(heap.min == model.min() && heap.unordered.sorted() == model.sorted())
        }
        model.sort()
        for element in model { #expect(heap.popMin() == element) }
        #expect(heap.popMin() == nil && heap.count == 0)
    }
}
