-- TPC-C's five transactions (clause 2) as functions. Items of an order are taken in order of their numbers, so that two orders do not
-- wait for each other. Days of an order go on from 2024-06-01, an hour for each number.

CREATE FUNCTION make_order(own_w int, own_d int, buyer int, lines int, warehouses int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
    number int; total numeric := 0; tax numeric; line int := 0; one record; found_quantity int;
BEGIN
    SELECT w_tax INTO tax FROM warehouse WHERE w_id = own_w;
    UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = own_w AND d_id = own_d RETURNING d_next_o_id - 1, tax + d_tax INTO number, tax;
    INSERT INTO orders VALUES (number, own_d, own_w, buyer, timestamp '2024-06-01' + (number - 3000) * interval '1 hour', NULL, lines, 1);
    INSERT INTO new_order VALUES (number, own_d, own_w);
    FOR one IN SELECT min(source) AS source, item FROM (
                   SELECT CASE WHEN random() < 0.01 THEN 1 + floor(random() * warehouses)::int ELSE own_w END AS source, 1 + floor(random() * 100000)::int AS item
                   FROM generate_series(1, lines)) chosen GROUP BY item ORDER BY 1, 2 LOOP
        line := line + 1;
        UPDATE stock SET s_quantity = CASE WHEN s_quantity > 15 THEN s_quantity - 5 ELSE s_quantity + 86 END, s_ytd = s_ytd + 5,
            s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (one.source <> own_w)::int
        WHERE s_w_id = one.source AND s_i_id = one.item RETURNING s_quantity INTO found_quantity;
        INSERT INTO order_line SELECT number, own_d, own_w, line, one.item, one.source, NULL, 5, 5 * i_price, 'info' FROM item WHERE i_id = one.item;
        total := total + 5 * (SELECT i_price FROM item WHERE i_id = one.item);
    END LOOP;
    RETURN total * (1 + tax) * (1 - (SELECT c_discount FROM customer WHERE c_w_id = own_w AND c_d_id = own_d AND c_id = buyer));
END $$;

CREATE FUNCTION pay(own_w int, own_d int, payer int, amount numeric) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE warehouse SET w_ytd = w_ytd + amount WHERE w_id = own_w;
    UPDATE district SET d_ytd = d_ytd + amount WHERE d_w_id = own_w AND d_id = own_d;
    UPDATE customer SET c_balance = c_balance - amount, c_ytd_payment = c_ytd_payment + amount, c_payment_cnt = c_payment_cnt + 1,
        c_data = CASE WHEN c_credit = 'BC' THEN left(amount || ' ' || c_data, 500) ELSE c_data END
    WHERE c_w_id = own_w AND c_d_id = own_d AND c_id = payer;
    INSERT INTO history VALUES (payer, own_d, own_w, own_d, own_w, timestamp '2024-06-01', amount, 'payment');
END $$;

CREATE FUNCTION deliver(own_w int, carrier int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    number int; buyer int; delivered int := 0;
BEGIN
    FOR own_d IN 1..10 LOOP
        SELECT no_o_id INTO number FROM new_order WHERE no_w_id = own_w AND no_d_id = own_d ORDER BY no_o_id LIMIT 1 FOR UPDATE SKIP LOCKED;
        CONTINUE WHEN number IS NULL;
        DELETE FROM new_order WHERE no_w_id = own_w AND no_d_id = own_d AND no_o_id = number;
        UPDATE orders SET o_carrier_id = carrier WHERE o_w_id = own_w AND o_d_id = own_d AND o_id = number RETURNING o_c_id INTO buyer;
        UPDATE order_line SET ol_delivery_d = timestamp '2024-06-02' + (number - 3000) * interval '1 hour'
        WHERE ol_w_id = own_w AND ol_d_id = own_d AND ol_o_id = number;
        UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1, c_balance = c_balance + (
            SELECT sum(ol_amount) FROM order_line WHERE ol_w_id = own_w AND ol_d_id = own_d AND ol_o_id = number)
        WHERE c_w_id = own_w AND c_d_id = own_d AND c_id = buyer;
        delivered := delivered + 1;
    END LOOP;
    RETURN delivered;
END $$;

CREATE FUNCTION status_of(own_w int, own_d int, buyer int) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(ol_delivery_d) FROM order_line WHERE ol_w_id = own_w AND ol_d_id = own_d AND ol_o_id = (
        SELECT o_id FROM orders WHERE o_w_id = own_w AND o_d_id = own_d AND o_c_id = buyer ORDER BY o_id DESC LIMIT 1)
$$;

CREATE FUNCTION low_stock(own_w int, own_d int, level int) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(DISTINCT s_i_id) FROM district, order_line, stock
    WHERE d_w_id = own_w AND d_id = own_d AND ol_w_id = own_w AND ol_d_id = own_d
      AND ol_o_id < d_next_o_id AND ol_o_id >= d_next_o_id - 20 AND s_w_id = own_w AND s_i_id = ol_i_id AND s_quantity < level
$$;
